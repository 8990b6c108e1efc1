#!/bin/sh
# The prose of the documentation, checked: prose.sh
#   prose.sh --long FILE...   prints the sentences of over 30 words, longest first
#
# Of every page: the mean sentence has at most 20 words, none has more than 40. ARCHITECTURE.md has at
# most 2,500 words, a page of docs/design at most 900. No page and no comment of compiler/ and runtime/
# (.def files too, but not their strings) uses a word that docs/GLOSSARY.md lists under "Words to
# avoid". Every term that the glossary explains is used outside the glossary, and every term that a
# page of docs/design sets in italics is in the glossary. Cells of tables have the same limit of words,
# but on docs/TUNING.md, and not the mean. Code, headings and the targets of links are not prose;
# docs/results is a notebook and not checked.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
MEAN=20 LONGEST=40 TOUR=2500 DESIGN=900
glossary=docs/GLOSSARY.md
status=0

# The sentences of FILE, one a line: `LINE WORDS SENTENCE`. A span of code is one word. With `cells` the
# sentences of its tables, else those of its text.
sentences() {
    awk -v cells="${2-}" '
        function flush(    n, i, sentence) {
            gsub(/[.!?][])"*_]*( |$)/, "&\n", text)
            n = split(text, piece, "\n")
            for (i = 1; i <= n; i++) {
                sentence = piece[i]
                gsub(/^ +| +$/, "", sentence)
                if (sentence ~ /[A-Za-z0-9]/) print begin, split(sentence, word, / +/), sentence
            }
            text = ""
        }
        function add(line) {
            if (text == "") begin = NR
            gsub(/!?\[!\[[^]]*\]\([^)]*\)\]\([^)]*\)/, "", line)
            gsub(/`[^`]*`/, "CODE", line)
            gsub(/\]\([^)]*\)/, "]", line)
            gsub(/<!--.*-->/, "", line)
            text = text " " line
        }
        /^ *```/ { flush(); fenced = !fenced; next }
        fenced { next }
        /^ *$/ { flush(); next }
        cells && !/^ *\|/ { next }
        cells {
            gsub(/`[^`]*`/, "CODE")
            gsub(/\\\|/, "or")
            n_cells = split($0, cell, "|")
            for (c = 1; c <= n_cells; c++) { add(cell[c]); flush() }
            next
        }
        /^ *\|/ || /^#/ || /^    / && text == "" { flush(); next }
        /^ *([*-]|[0-9]+\.) / { flush(); sub(/^ *([*-]|[0-9]+\.) +/, "") }
        { add($0) }
        END { flush() }' "$1"
}

if [ "${1-}" = --long ]; then
    shift
    for file; do sentences "$file" | awk -v f="$file" '$2 > 30 { print $2, f ":" $0 }'; done | sort -rn
    exit
fi

say() {
    echo "$*"
    status=1
}

check_lengths() {
    sentences "$1" | awk -v file="$1" -v mean="$MEAN" -v longest="$LONGEST" '
        $2 > longest { print file ":" $1 ": a sentence of " $2 " words: " substr($0, length($1 $2) + 3, 60) " ..."; bad = 1 }
        { n += $2 }
        END {
            if (NR && n > mean * NR) { printf "%s: the mean sentence has %.1f words, at most %d\n", file, n / NR, mean; bad = 1 }
            exit bad
        }' || status=1
}

check_cells() {
    sentences "$1" cells | awk -v file="$1" -v longest="$LONGEST" '
        $2 > longest { print file ":" $1 ": a sentence of " $2 " words: " substr($0, length($1 $2) + 3, 60) " ..."; bad = 1 }
        END { exit bad }' || status=1
}

# Words outside of blocks: pictures and what a command prints are none.
check_words() {
    n=$(awk '/^ *```/ { fenced = !fenced; next } !fenced { n += NF } END { print n + 0 }' "$1")
    [ "$n" -le "$2" ] || say "$1: $n words, at most $2"
}

# The first cells of the table under heading $1 of the glossary, one a line.
first_cells() {
    awk -F '|' -v heading="## $1" '
        /^## / { inside = $0 == heading }
        inside && /^\| / && !/^\| *-/ && n++ { gsub(/^ +| +$|[`*]/, "", $2); print $2 }' "$glossary"
}

avoided_words() {
    first_cells "Words to avoid" | sed 's/, /|/g' | tr '\n' '|' | sed 's/|$//'
}

check_avoided() {
    found=$(sentences "$1" | grep -iwE "$(avoided_words)" | cut -c1-140)
    [ -z "$found" ] || say "$1: words to avoid ($glossary), by line and number of words:
$found"
}

# The comments of C and .def files, one a line: `FILE:LINE: COMMENT`.
comments() {
    awk '
        FNR == 1 { inside = 0 }
        {
            line = $0
            if (inside && line !~ /^ *\*\//) sub(/^ *\* ?/, "", line)
            for (;;) {
                if (!inside) {
                    if (!(at = index(line, "/*"))) break
                    inside = 1
                    text = FILENAME ":" FNR ":"
                    line = substr(line, at + 2)
                }
                if (!(at = index(line, "*/"))) { text = text " " line; break }
                print text " " substr(line, 1, at - 1)
                inside = 0
                line = substr(line, at + 2)
            }
        }' "$@"
}

check_comments() {
    found=$(comments $(find compiler runtime -name '*.[chyl]' -o -name '*.def' | sort) | sed 's/: /:\t/' |
        grep -iwE "	.*($(avoided_words))" | cut -c1-140)
    [ -z "$found" ] || say "words to avoid ($glossary) in comments:
$found"
}

check_terms() {
    for heading in "The sixteen" "The others"; do
        first_cells "$heading"
    done | {
        bad=0
        while read -r term; do
            grep -rqiF --include='*.[chyl]' --include='*.def' --include='*.md' --exclude=GLOSSARY.md \
                -we "$term" compiler runtime docs && continue
            echo "$glossary: the term '$term' is used nowhere"
            bad=1
        done
        exit $bad
    } || status=1
}

# A page of docs/design sets a term in italics where it explains it. Single letters are mathematics.
check_defined() {
    terms=$(for heading in "The sixteen" "The others"; do first_cells "$heading"; done)
    grep -noE '(^|[ (])\*[A-Za-z][A-Za-z -]+\*' "$1" | tr -d '(*' | while IFS=: read -r line term; do
        echo "$terms" | grep -qixF -e "${term# }" || echo "$1:$line: the glossary lacks '${term# }'"
    done | grep . && status=1
}

for page in docs/*.md docs/design/*.md README.md; do
    check_lengths "$page"
    [ "$page" = docs/TUNING.md ] || check_cells "$page"
    [ "$page" = "$glossary" ] || check_avoided "$page"
done
check_comments
check_words docs/ARCHITECTURE.md $TOUR
for page in docs/design/*.md; do
    check_words "$page" $DESIGN
    check_defined "$page"
done
check_terms
exit $status
