" Syntax of the graph language of fusec. Ops and defs are looked up where something is called, so
" every call looks the same.
if exists('b:current_syntax')
  finish
endif

syntax keyword fusecKeyword graph param def return kernel weights
" These are words of the language only where a dim is declared, `include` before a
" string, `fuse` before must or never, `online` before a brace, `as`
" between a call and a string, `if` and `else` behind an expression, and `loop`, `in` and `with` at
" the head of a loop.
syntax match fusecKeyword /^\s*\zsdim\ze\s\+\h/
syntax match fusecKeyword /\%(^\s*dim\s\+\h\w*\s\+\)\@<=in\>/
syntax match fusecKeyword /^\s*\zsfuse\s\+\%(must\|never\)\ze\s*{/
syntax match fusecKeyword /^\s*\zsonline\ze\s*{/
syntax match fusecKeyword /^\s*\zsinclude\ze\s*"/
syntax match fusecKeyword /)\s*\zsas\ze\s*"/
syntax match fusecKeyword /\%(=\|\<return\)\s*\zsloop\ze\s\+\h\w*\s\+in\>/
syntax match fusecKeyword /\%(\<loop\s\+\h\w*\s\+\)\@<=in\>/
syntax match fusecKeyword /\<with\ze\s\+\h\w*\s*=[^=]/
syntax match fusecKeyword /[A-Za-z0-9_)\]"]\s\+\zs\%(if\|else\)\ze\s/
syntax match fusecKeyword /\<mult\ze\s\+[0-9(A-Za-z_]/
syntax keyword fusecConstant true false none
syntax keyword fusecNumber inf nan
syntax keyword fusecType f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 u16 u32 bool

syntax match fusecNumber /\<0x\x\+\>/
syntax match fusecNumber /\<\d\+\%(\.\d\+\)\?\%([eE][+-]\?\d\+\)\?\>/
syntax region fusecString start=/"/ end=/"/ oneline
syntax match fusecComment /#.*/ contains=fusecTodo,@Spell
syntax keyword fusecTodo TODO FIXME contained
syntax match fusecCall /\<\h\w*\ze(/
syntax match fusecArgument /\<\h\w*\ze=[^=]/
syntax match fusecOperator /->\|\.\.\.\?\|[-+*\/%@!<>=&|]/

highlight default link fusecKeyword Keyword
highlight default link fusecConstant Constant
highlight default link fusecType Type
highlight default link fusecNumber Number
highlight default link fusecString String
highlight default link fusecComment Comment
highlight default link fusecTodo Todo
highlight default link fusecCall Function
highlight default link fusecArgument Identifier
highlight default link fusecOperator Operator

let b:current_syntax = 'fusec'
