/* The grammar of the graph language. Each action calls one builder and checks nothing. A statement
 * or item that does not parse is dropped up to the end of its line. */
%require "3.8"
%define api.prefix {ast_yy}
%define api.pure full
%define api.location.type {Span}
%define parse.lac full
%define parse.error custom
%locations
%expect 0
%param {void *scanner}

%code requires {
#include "front/ast.h"
}

%union {
    Str str;
    int64_t integer;
    double number;
    Ast *ast;
    AstList list;
    AstType *type;
    AstDecl decl;
    AstDecls decls;
    AstStmt *stmt;
    AstStmts stmts;
}

%code {
#include <ctype.h>
#include <math.h>

#define YYINITDEPTH 2000
#define YYMAXDEPTH 2000 /* so that the parser's stacks never move to the heap */
#define YYLLOC_DEFAULT(result, rhs, n)                         \
    do {                                                       \
        (result).begin = (n) ? YYRHSLOC(rhs, 1).begin : YYRHSLOC(rhs, 0).end; \
        (result).end = YYRHSLOC(rhs, n).end;                   \
    } while (0)

int ast_yylex(YYSTYPE *value, Span *span, void *scanner);
Parse *ast_yyget_extra(void *scanner);
static void yyerror(const Span *span, void *scanner, const char *message);

#define P (ast_yyget_extra(scanner))
#define ARENA (P->arena)
}

%token SEP "end of line" YYEOF 0 "end of file" BAD "bad token"
%token WEIGHTS "`weights`" DIM "`dim`" IN "`in`" INCLUDE "`include`" AS "`as`" LOOP "`loop`" WITH "`with`" IF "`if`" ELSE "`else`" FUSE "`fuse`" ONLINE "`online`" MULT "`mult`" GRAPH "`graph`" PARAM "`param`"
%token DEF "`def`" RETURN "`return`" KERNEL "`kernel`"
%token TRUE_ "`true`" FALSE_ "`false`" NONE_ "`none`" INF_ "`inf`" NAN_ "`nan`"
%token ARROW "`->`" DOTDOT "`..`" ELLIPSIS "`...`"
%token OR "`||`" AND "`&&`" EQ "`==`" NE "`!=`" LE "`<=`" GE "`>=`"
%token SHL "`<<`" SHR "`>>`"
%token STAR "`*`"
%token <str> NAME "a name" STRING "a string"
%token <integer> INTEGER "an integer"
%token <number> FLOAT "a number"

%precedence LOOP /* in `loop if`, `if` is a name, the index of a loop */
%right IF ELSE
%left OR
%left AND
%nonassoc EQ NE '<' '>' LE GE
%left '|'
%left '^'
%left '&'
%left SHL SHR
%left '+' '-'
%left STAR '/' '%' '@'
%precedence UNARY

%type <ast> name expr postfix primary call arg subscript bound opt_step value loop loop_step
%type <list> names exprs args arglist subscripts opt_exprs
%type <type> type
%type <decl> decl formal carry
%type <decls> decls decllist formals formallist carried carriedlist
%type <stmt> stmt
%type <stmts> stmts

%%

file
    : items

items
    : %empty
    | items item SEP
    | items error SEP                         { ast_add_broken_item(P, @2); }

item
    : WEIGHTS STRING                          { ast_add_weights(P, $2, @2); }
    | INCLUDE STRING                          { ast_add_include(P, $2, @2); }
    | DIM name IN expr DOTDOT expr            { ast_add_dim(P, $2, $4, $6, NULL); }
    | DIM name IN expr DOTDOT expr MULT expr  { ast_add_dim(P, $2, $4, $6, $8); }
    | DIM name '=' expr                       { ast_add_dim(P, $2, $4, NULL, NULL); }
    | GRAPH name '(' decls ')' ARROW '(' decls ')' '{' stmts '}'
                                              { ast_add_graph(P, $2, &$4, &$8, &$11); }
    | GRAPH error                             { ast_add_broken_item(P, @$); }
    | GRAPH error '{' stmts '}'               { ast_add_broken_item(P, @$); }
    | DEF name '(' formals ')' '{' stmts '}'  { ast_add_def(P, $2, &$4, &$7); }
    | DEF name '(' formals ')' '=' value
      {
        AstStmts body = {0};
        AstList values = {0};
        vec_push(ARENA, &values, $7);
        vec_push(ARENA, &body, ast_return(P, &values, @7));
        ast_add_def(P, $2, &$4, &body);
      }
    | DEF error                               { ast_add_broken_item(P, @$); }
    | DEF error '{' stmts '}'                 { ast_add_broken_item(P, @$); }

decls
    : %empty                                  { $$ = (AstDecls){0}; }
    | decllist opt_comma

decllist
    : decl                                    { $$ = (AstDecls){0}; vec_push(ARENA, &$$, $1); }
    | decllist ',' decl                       { $$ = $1; vec_push(ARENA, &$$, $3); }

decl
    : name ':' type             { $$ = (AstDecl){.name = $1->name, .span = @1, .type = $3}; }

formals
    : %empty                                  { $$ = (AstDecls){0}; }
    | formallist opt_comma

formallist
    : formal                                  { $$ = (AstDecls){0}; vec_push(ARENA, &$$, $1); }
    | formallist ',' formal                   { $$ = $1; vec_push(ARENA, &$$, $3); }

formal
    : name                      { $$ = (AstDecl){.name = $1->name, .span = @1}; }
    | carry

type
    : name                                    { $$ = ast_type(P, $1->name, NULL, @$); }
    | name '[' opt_exprs ']'                  { $$ = ast_type(P, $1->name, &$3, @$); }

stmts
    : %empty                                  { $$ = (AstStmts){0}; }
    | stmts stmt SEP                          { $$ = $1; vec_push(ARENA, &$$, $2); }
    | stmts error SEP
      {
        $$ = $1;
        vec_push(ARENA, &$$, ast_broken_stmt(P, @2));
        if (!P->broke_in_brackets) yyerrok; /* the next line starts a new statement */
      }

stmt
    : names '=' value                         { $$ = ast_bind(P, &$1, $3, @$); }
    | PARAM name ':' type                     { $$ = ast_param(P, $2, $4, $2->name, @$); }
    | PARAM name ':' type '=' STRING          { $$ = ast_param(P, $2, $4, $6, @$); }
    | RETURN exprs                            { $$ = ast_return(P, &$2, @$); }
    | RETURN loop
      {
        AstList values = {0};
        vec_push(ARENA, &values, $2);
        $$ = ast_return(P, &values, @$);
      }
    | KERNEL name '{' stmts '}'               { $$ = ast_kernel(P, $2, &$4); }
    | FUSE name '{' stmts '}'                 { $$ = ast_fuse(P, $2, &$4); }
    | ONLINE '{' stmts '}'                    { $$ = ast_online(P, &$3, @1); }

value
    : expr
    | loop

loop
    : LOOP name IN expr ':' expr loop_step carried '{' stmts '}'
      {
        AstLoop loop = {.index = $2->name, .index_span = @2, .begin = $4, .end = $6, .step = $7,
                        .carried = $8, .body = $10};
        $$ = ast_loop(P, &loop, (Span){@1.begin, @8.end});
      }

loop_step
    : %empty                                  { $$ = NULL; }
    | ':' expr                                { $$ = $2; }

carried
    : %empty                                  { $$ = (AstDecls){0}; }
    | WITH carriedlist                        { $$ = $2; }

carriedlist
    : carry                                   { $$ = (AstDecls){0}; vec_push(ARENA, &$$, $1); }
    | carriedlist ',' carry                   { $$ = $1; vec_push(ARENA, &$$, $3); }

carry
    : name '=' expr
                    { $$ = (AstDecl){.name = $1->name, .span = @1, .default_value = $3}; }

names
    : name                                    { $$ = (AstList){0}; vec_push(ARENA, &$$, $1); }
    | names ',' name                          { $$ = $1; vec_push(ARENA, &$$, $3); }

name
    : NAME                                    { $$ = ast_named(P, AST_NAME, $1, @$); }
    | WEIGHTS           { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "weights"), @$); }
    | DIM               { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "dim"), @$); }
    | IN                { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "in"), @$); }
    | INCLUDE           { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "include"), @$); }
    | AS                { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "as"), @$); }
    | LOOP              { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "loop"), @$); }
    | WITH              { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "with"), @$); }
    | IF                { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "if"), @$); }
    | ELSE              { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "else"), @$); }
    | FUSE              { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "fuse"), @$); }
    | ONLINE            { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "online"), @$); }
    | MULT              { $$ = ast_named(P, AST_NAME, strtab_intern_z(P->strings, "mult"), @$); }

exprs
    : expr                                    { $$ = (AstList){0}; vec_push(ARENA, &$$, $1); }
    | exprs ',' expr                          { $$ = $1; vec_push(ARENA, &$$, $3); }

opt_exprs
    : %empty                                  { $$ = (AstList){0}; }
    | exprs opt_comma

opt_comma
    : %empty
    | ','

expr
    : postfix
    | expr IF expr ELSE expr                  { $$ = ast_choice(P, $3, $1, $5, @$); }
    | expr OR expr                            { $$ = ast_binary(P, SUGAR_OR, $1, $3, @$); }
    | expr AND expr                           { $$ = ast_binary(P, SUGAR_AND, $1, $3, @$); }
    | expr EQ expr                            { $$ = ast_binary(P, SUGAR_EQ, $1, $3, @$); }
    | expr NE expr                            { $$ = ast_binary(P, SUGAR_NE, $1, $3, @$); }
    | expr '<' expr                           { $$ = ast_binary(P, SUGAR_LT, $1, $3, @$); }
    | expr LE expr                            { $$ = ast_binary(P, SUGAR_LE, $1, $3, @$); }
    | expr '>' expr                           { $$ = ast_binary(P, SUGAR_GT, $1, $3, @$); }
    | expr GE expr                            { $$ = ast_binary(P, SUGAR_GE, $1, $3, @$); }
    | expr '|' expr                           { $$ = ast_binary(P, SUGAR_BIT_OR, $1, $3, @$); }
    | expr '^' expr                           { $$ = ast_binary(P, SUGAR_BIT_XOR, $1, $3, @$); }
    | expr '&' expr                           { $$ = ast_binary(P, SUGAR_BIT_AND, $1, $3, @$); }
    | expr SHL expr                           { $$ = ast_binary(P, SUGAR_SHL, $1, $3, @$); }
    | expr SHR expr                           { $$ = ast_binary(P, SUGAR_SHR, $1, $3, @$); }
    | expr '+' expr                           { $$ = ast_binary(P, SUGAR_ADD, $1, $3, @$); }
    | expr '-' expr                           { $$ = ast_binary(P, SUGAR_SUB, $1, $3, @$); }
    | expr STAR expr                          { $$ = ast_binary(P, SUGAR_MUL, $1, $3, @$); }
    | expr '/' expr                           { $$ = ast_binary(P, SUGAR_DIV, $1, $3, @$); }
    | expr '%' expr                           { $$ = ast_binary(P, SUGAR_REM, $1, $3, @$); }
    | expr '@' expr                           { $$ = ast_binary(P, SUGAR_MATMUL, $1, $3, @$); }
    | '-' expr %prec UNARY                    { $$ = ast_unary(P, SUGAR_NEG, $2, @$); }
    | '!' expr %prec UNARY                    { $$ = ast_unary(P, SUGAR_NOT, $2, @$); }
    | '~' expr %prec UNARY                    { $$ = ast_unary(P, SUGAR_BIT_NOT, $2, @$); }

postfix
    : primary
    | postfix '.' name                        { $$ = ast_field(P, $1, $3->name, @3, @$); }
    | postfix '.' name '(' args ')'           { $$ = ast_method(P, $1, $3->name, @3, @$); }
    | postfix '[' subscripts opt_comma ']'    { $$ = ast_subscript(P, $1, &$3, @$); }

primary
    : INTEGER                                 { $$ = ast_int(P, $1, @$); }
    | FLOAT                                   { $$ = ast_float(P, $1, @$); }
    | INF_                                    { $$ = ast_float(P, INFINITY, @$); }
    | NAN_                                    { $$ = ast_float(P, NAN, @$); }
    | TRUE_                                   { $$ = ast_int(P, 1, @$); $$->kind = AST_BOOL; }
    | FALSE_                                  { $$ = ast_int(P, 0, @$); $$->kind = AST_BOOL; }
    | NONE_                                   { $$ = ast_new(P, AST_NONE, @$); }
    | STRING                                  { $$ = ast_named(P, AST_STRING, $1, @$); }
    | name
    | call
    | call AS STRING                          { $$ = ast_as(P, $1, $3, @3, @$); }
    | '(' expr ')'                            { $$ = $2; }
    | '[' opt_exprs ']'                       { $$ = ast_list(P, AST_LIST, &$2, @$); }

call
    : name '(' args ')'                       { $$ = ast_call(P, $1->name, @1, &$3, @$); }

args
    : %empty                                  { $$ = (AstList){0}; }
    | arglist opt_comma

arglist
    : arg                                     { $$ = (AstList){0}; vec_push(ARENA, &$$, $1); }
    | arglist ',' arg                         { $$ = $1; vec_push(ARENA, &$$, $3); }

arg
    : expr
    | name '=' expr                           { $$ = ast_keyword(P, $1->name, @1, $3, @$); }

subscripts
    : subscript                               { $$ = (AstList){0}; vec_push(ARENA, &$$, $1); }
    | subscripts ',' subscript                { $$ = $1; vec_push(ARENA, &$$, $3); }

subscript
    : expr
    | ELLIPSIS                                { $$ = ast_new(P, AST_ELLIPSIS, @$); }
    | bound ':' bound opt_step                { $$ = ast_range(P, $1, $3, $4, @$); }

bound
    : %empty                                  { $$ = NULL; }
    | expr

opt_step
    : %empty                                  { $$ = NULL; }
    | ':' bound                               { $$ = $2; }

%%

static void yyerror(const Span *span, void *scanner, const char *message) {
    (void)message; /* the only message is "memory exhausted", because the stack is bounded */
    parse_error(P, DIAG_LIMIT, *span, "expression nested too deeply");
}

/* Groups expected tokens under one word: "expression" for those that begin one, and "operator" for
 * operators. */
static bool begins_expr(yysymbol_kind_t token) {
    const char *name = yysymbol_name(token);
    return (token >= YYSYMBOL_TRUE_ && token <= YYSYMBOL_NAN_) ||
           (token >= YYSYMBOL_NAME && token <= YYSYMBOL_FLOAT) || strchr("([-!~", name[1]);
}

static bool is_operator(yysymbol_kind_t token) {
    const char *name = yysymbol_name(token);
    return (token >= YYSYMBOL_OR && token <= YYSYMBOL_STAR) || strchr("<>+-/%@[(.|^&", name[1]);
}

static bool is_soft_keyword(yysymbol_kind_t token) {
    return token >= YYSYMBOL_WEIGHTS && token <= YYSYMBOL_MULT;
}

static bool contains(const yysymbol_kind_t *tokens, int n, yysymbol_kind_t token) {
    for (int i = 0; i < n; i++)
        if (tokens[i] == token) return true;
    return false;
}

/* The words of the expected tokens. Bison names a character token 'c'; users read `c`. */
typedef struct Expected {
    int n;
    const char *words[5];
} Expected;

static void expect(Expected *expected, const char *word) {
    int max = (int)(sizeof expected->words / sizeof expected->words[0]);
    if (expected->n < max) expected->words[expected->n++] = word;
}

static Expected expected_words(const yysymbol_kind_t *tokens, int n) {
    Expected expected = {0};
    bool has_expr = contains(tokens, n, YYSYMBOL_INTEGER);
    bool has_operator = contains(tokens, n, YYSYMBOL_STAR);
    bool has_name = contains(tokens, n, YYSYMBOL_NAME);
    bool has_stmt = contains(tokens, n, YYSYMBOL_KERNEL);
    if (has_expr) expect(&expected, "an expression");
    if (has_operator) expect(&expected, "an operator");
    if (has_stmt) expect(&expected, "a statement");
    for (int i = 0; i < n; i++) {
        yysymbol_kind_t token = tokens[i];
        bool is_told = (has_expr && begins_expr(token)) || (has_operator && is_operator(token)) ||
                       (has_stmt && (token == YYSYMBOL_NAME || (token >= YYSYMBOL_PARAM &&
                                                                token <= YYSYMBOL_KERNEL))) ||
                       ((has_name || has_expr) && is_soft_keyword(token)) ||
                       (has_operator && (token == YYSYMBOL_AS || token == YYSYMBOL_IF));
        bool is_item = contains(tokens, n, YYSYMBOL_GRAPH) && token == YYSYMBOL_YYEOF;
        if (!is_told && !is_item && token != YYSYMBOL_BAD) expect(&expected, yysymbol_name(token));
    }
    return expected;
}

static void add_expected(Text *out, const yysymbol_kind_t *tokens, int n) {
    Expected expected = expected_words(tokens, n);
    for (int i = 0; i < expected.n; i++) {
        const char *word = expected.words[i];
        text_puts(out, i == 0 ? ", expected " : i + 1 < expected.n ? ", " : " or ");
        if (word[0] == '\'')
            text_printf(out, "`%c`", word[1]);
        else
            text_puts(out, word);
    }
}

static bool is_comparison(yysymbol_kind_t token) {
    const char *name = yysymbol_name(token);
    return (token >= YYSYMBOL_EQ && token <= YYSYMBOL_GE) || strchr("<>", name[1]);
}

/* The operator that a word is in Python; NULL: it is none. */
static const char *operator_of_word(const char *text, int n_bytes) {
    static const char *const words[][2] = {{"and", "&&"}, {"or", "||"}, {"is", "=="}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((int)strlen(words[i][0]) == n_bytes && strncmp(words[i][0], text, (size_t)n_bytes) == 0)
            return words[i][1];
    return NULL;
}

/* A word of the program that ends at `end`, blanks aside. */
typedef struct Word {
    const char *text;
    size_t n_bytes;
    bool begins_line;
} Word;

static Word word_before(const char *text, uint32_t end) {
    while (end > 0 && text[end - 1] == ' ') end--;
    uint32_t begin = end;
    while (begin > 0 && (isalnum((unsigned char)text[begin - 1]) || text[begin - 1] == '_'))
        begin--;
    uint32_t line = begin;
    while (line > 0 && text[line - 1] == ' ') line--;
    bool begins_line = line == 0 || strchr("\n{;", text[line - 1]);
    return (Word){text + begin, end - begin, begins_line};
}

static bool is_among(const char *list, const Word *word) {
    while (*list) {
        size_t n = strcspn(list, " ");
        if (n == word->n_bytes && strncmp(list, word->text, n) == 0) return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

/* The help for a word of another language that ends at `end`, blanks aside; NULL: none ends there.
 */
static const char *help_of_word(const char *text, uint32_t end) {
    static const struct {
        const char *words, *help;
        bool begins_line;
    } rows[] = {
#define WORD(word, help) {word, help, false},
#define STATEMENT(help, words) {words, help, true},
#include "front/foreign.def"
    };
    Word word = word_before(text, end);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (word.n_bytes > 0 && (word.begins_line || !rows[i].begins_line) &&
            is_among(rows[i].words, &word))
            return rows[i].help;
    return NULL;
}

static bool contains_char(const yysymbol_kind_t *tokens, int n, char c) {
    for (int i = 0; i < n; i++) {
        const char *name = yysymbol_name(tokens[i]);
        if (name[0] == '\'' && name[1] == c) return true;
    }
    return false;
}

/* The help for a token where a statement or a def has its `=`; NULL: there is none. */
static const char *help_of_binding(char first, const yysymbol_kind_t *expected, int n) {
    if (contains(expected, n, YYSYMBOL_STAR) || !contains_char(expected, n, '=')) return NULL;
    if (contains_char(expected, n, '{') && strchr(":-", first))
        return "a def is `def f(x) = x * x`, or `def f(x) { .. return y }` in several lines";
    if (first == ':') return "a name has no type here: it has that of its value";
    if (!contains_char(expected, n, ')') && strchr(".([", first))
        return "a statement binds a name, as in `y = f(x)`, and nothing else happens";
    return NULL;
}

/* The help for a keyword or a bracket that stands elsewhere in other languages; NULL: there is
 * none. */
static const char *help_of_place(yysymbol_kind_t token, const char *at,
                                 const yysymbol_kind_t *expected, int n) {
    bool ends_value = contains(expected, n, YYSYMBOL_STAR);
    if (token == YYSYMBOL_DEF) return "a `def` stands outside of graphs and other defs";
    bool names_params = strncmp(at, "as \"", 4) == 0;
    if (token == YYSYMBOL_AS && ends_value && !names_params)
        return "another dtype is `cast(x, f32)`";
    if (token == YYSYMBOL_IN && ends_value) return "whether x has an element a is `any(x == a)`";
    if (*at == '{' && contains(expected, n, YYSYMBOL_INTEGER))
        return "a list stands in square brackets, as in `[0, 1]`";
    if (*at == ',' && ends_value && !contains_char(expected, n, ','))
        return "several values are a list, as in `a, b = [x, y]`";
    return NULL;
}

/* What stands in the place of the token, which other languages have there; NULL: nothing is known. */
static const char *help_of_token(const Parse *parse, yysymbol_kind_t token, uint32_t begin,
                                 const yysymbol_kind_t *expected, int n) {
    const char *at = parse->source->text + begin;
    bool ends_value = contains(expected, n, YYSYMBOL_STAR);
    bool begins_value = contains(expected, n, YYSYMBOL_INTEGER);
    char before = begin > 0 ? at[-1] : ' ';
    if (*at == '(' && contains(expected, n, YYSYMBOL_WITH))
        return "carried values stand behind `with`, as in `loop i in 0:8 with h = x`";
    if (is_comparison(token) && ends_value) return "comparisons do not chain, join them with `&&`";
    if (*at == ',' && contains_char(expected, n, ')') && !contains_char(expected, n, ','))
        return "a list stands in brackets, as in `[0, 1]`";
    if (*at == '=' && begins_value && strchr("+-*/%@&|^", before))
        return "no operator ends in `=`: bind a name to the result, as in `c = a + b`";
    if (*at == '(' && ends_value && before == ')')
        return "a call gives no function: it has all arguments in one list, as in `linear(x, w)`";
    if ((token == YYSYMBOL_INF_ || token == YYSYMBOL_NAN_) && !begins_value)
        return "`inf` and `nan` have no module in front";
    const char *help = help_of_binding(*at, expected, n);
    return help ? help : help_of_place(token, at, expected, n);
}

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner) {
    enum { MAX_EXPECTED = 64, MAX_SHOWN = 40 };
    Parse *parse = P;
    yysymbol_kind_t token = yypcontext_token(context);
    Span span = *yypcontext_location(context);
    parse->broke_in_brackets = parse->n_open > 0;
    parse->n_open = 0; /* so that the end of this line ends the broken statement */
    if (token == YYSYMBOL_BAD) return 0;
    Text text = {.arena = parse->arena};
    int n_bytes = (int)(span.end - span.begin);
    if (token == YYSYMBOL_SEP || token == YYSYMBOL_YYEOF)
        text_printf(&text, "unexpected %s", yysymbol_name(token));
    else
        text_printf(&text, "unexpected `%.*s`", n_bytes < MAX_SHOWN ? n_bytes : MAX_SHOWN,
                    parse->source->text + span.begin);
    yysymbol_kind_t expected[MAX_EXPECTED];
    int n = yypcontext_expected_tokens(context, expected, MAX_EXPECTED);
    const char *word = operator_of_word(parse->source->text + span.begin, n_bytes);
    const char *help = help_of_word(parse->source->text, span.begin);
    if (!help) help = help_of_word(parse->source->text, span.end);
    if (!help) help = help_of_token(parse, token, span.begin, expected, n);
    if (help)
        text_printf(&text, ": %s", help);
    else if (word && contains(expected, n, YYSYMBOL_STAR))
        text_printf(&text, ": the operator is `%s`", word);
    else
        add_expected(&text, expected, n);
    parse_error(parse, DIAG_SYNTAX, span, text_str(&text));
    return 0;
}
