" The suffix was that of a parser generator once, which the editor still knows.
autocmd BufNewFile,BufRead *.g set filetype=fusec
