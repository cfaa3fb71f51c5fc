# Copies a test file of the rocksdb crate without the items that name something absent, and takes absent names out of its
# imports. The file is laid out by rustfmt: an item begins in the first column, and its last line does, too.
#
# -v words=A|B|C    absent names    -v tests=A|B    tests to remove
# On stderr, for each test: "kept NAME" or "removed NAME".

function names_absent(text) {
    return words != "" && text ~ ("(^|[^A-Za-z0-9_])(" words ")([^A-Za-z0-9_]|$)")
}

# An import without the absent names; a group of which the module is absent goes as a whole.
function import(text,    token, count, i, out, depth, dropping) {
    sub(/^(\n|\/\/[^\n]*\n)*/, "", text)
    gsub(/[{},;]/, " & ", text)
    count = split(text, token, /[ \n]+/)
    for (i = 1; i <= count; i++) {
        if (dropping) {
            if (token[i] == "{") depth++
            if (token[i] == "}" && --depth == 0) dropping = 0
            continue
        }
        if (names_absent(token[i])) {
            if (token[i + 1] == "{") { dropping = 1; depth = 0 }
            else if (token[i + 1] == "as") i += 2
            continue
        }
        # A comma behind nothing.
        if (token[i] == "," && (out ~ /[{,] *$/ || out == "")) continue
        out = out " " token[i]
    }
    return out ~ /use *;/ || out ~ /^ *use *$/ ? "" : out "\n"
}

function finish(    name) {
    if (item == "") return
    name = item
    if (item ~ /(^|\n)(pub )?fn /) {
        sub(/(.*\n)?(pub )?fn /, "", name)
        sub(/[^A-Za-z0-9_].*/, "", name)
    } else name = ""
    is_test = item ~ /(^|\n)#\[test\]/
    if (item ~ /(^|\n)(pub )?use /) printf "%s", import(item)
    else if (names_absent(item) || (is_test && tests != "" && name ~ ("^(" tests ")$"))) {
        if (is_test) print "removed " name > "/dev/stderr"
    } else {
        printf "%s", item
        if (is_test) print "kept " name > "/dev/stderr"
    }
    item = ""
    began = 0
}

{
    item = item $0 "\n"
    if (!began && $0 ~ /^[A-Za-z]/) {
        began = 1
        if ($0 ~ /[;}]$/) finish()
        next
    }
    if (began && ($0 ~ /^}/ || ($0 ~ /^[])]/ && $0 ~ /;$/))) finish()
}

END { began = 1; finish() }
