package policies

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// hintFor says what to do about an error of the parser or the compiler.
func hintFor(err *ast.Error) string {
	switch details := err.Details.(type) {
	case *ast.RefErrInvalidDetail:
		key, ok := details.Ref[details.Pos].Value.(ast.String)
		if !ok {
			return ""
		}
		var known []string
		for _, v := range details.OneOf {
			if s, ok := v.(ast.String); ok {
				known = append(known, string(s))
			}
		}
		return didYouMean(string(key), known)
	case *ast.RefErrUnsupportedDetail:
		return "the schema has nothing below " + details.Ref[:details.Pos+1].String()
	}
	if name, ok := strings.CutPrefix(err.Message, "undefined function "); ok {
		return hintForFunction(name)
	}
	switch {
	case strings.Contains(err.Message, "keyword is required before"), strings.Contains(err.Message, "keyword is required for"):
		return "policies are Rego v1: `if` before a body, `contains` for the members of a set"
	case strings.HasPrefix(err.Message, "assigned var"), strings.HasPrefix(err.Message, "declared var"):
		return "use the variable, or write _ in its place"
	case strings.HasSuffix(err.Message, "unused") && strings.HasPrefix(err.Message, "import"):
		return "remove the import"
	}
	return ""
}

// hintForFunction tells a builtin that is refused from a name that is misspelt.
func hintForFunction(name string) string {
	var known []string
	for _, b := range capabilities().Builtins {
		known = append(known, b.Name)
	}
	if !slices.ContainsFunc(ast.CapabilitiesForThisVersion().Builtins, func(b *ast.Builtin) bool { return b.Name == name }) {
		return didYouMean(name, known)
	}
	why := "one pod must get one answer, whoever asks and whenever"
	switch {
	case name == "http.send" || strings.HasPrefix(name, "net."):
		why = "a decision must not depend on the network, nor send a pod there"
	case strings.HasPrefix(name, "time.") || strings.HasPrefix(name, "io.jwt."):
		why = "a decision must not depend on the clock: use input.request.date, the UTC day"
	case name == "opa.runtime":
		why = "the process and its environment are none of a policy's business"
	case strings.HasPrefix(name, "json.") || strings.HasPrefix(name, "graphql."):
		why = "a schema may be fetched from the network"
	case name == "bits.lsh":
		why = "a shift by a large number takes all memory there is"
	case name == "trace":
		why = "it writes what a pod holds to a log"
	}
	return name + " is not allowed in policies: " + why
}

// hintForEvaluation says what to do about an error of an evaluation.
func hintForEvaluation(err *topdown.Error) string {
	switch err.Code {
	case topdown.ConflictErr:
		return "two rules hold for one pod and differ: make their conditions exclude each other, or join them with else"
	case topdown.BuiltinErr:
		return "a builtin was given what it cannot take: test the value first, such as with is_string or regex.match"
	}
	return ""
}

var unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)

// hintForShape knows the keys of a [Decision].
func hintForShape(err error) string {
	m := unknownField.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	var known []string
	for i, t := 0, reflect.TypeFor[Decision](); i < t.NumField(); i++ {
		known = append(known, t.Field(i).Tag.Get("json"))
	}
	slices.Sort(known)
	if hint := didYouMean(m[1], known); hint != "" {
		return hint
	}
	return "a decision has the keys " + strings.Join(known, ", ")
}

// hintForData names the rule or key that a ref of data which does not exist was meant
// to be. What follows the misspelt part is left as it is.
func hintForData(compiler *ast.Compiler, set *ast.SchemaSet, ref ast.Ref) string {
	var known []ast.Ref
	for _, module := range compiler.Modules {
		for _, rule := range module.Rules {
			known = append(known, rule.Ref().GroundPrefix())
		}
	}
	for _, document := range []string{"catalog", "config"} {
		root := ast.DefaultRootRef.Append(ast.StringTerm(document))
		known = append(known, root)
		schema, _ := set.Get(ast.SchemaRootRef.Append(ast.StringTerm(document))).(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for key := range properties {
			known = append(known, root.Append(ast.StringTerm(key)))
		}
	}
	const most = 2 // letters: a path has much in common with many others
	best, least := "", most+1
	for _, k := range known {
		if len(k) > len(ref) {
			continue
		}
		meant := k.Concat(ref[len(k):]).String()
		if d := distance(ref[:len(k)].String(), k.String()); d > 0 && (d < least || d == least && meant < best) {
			best, least = meant, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// didYouMean names the known word that a misspelt one is nearest to; none where all
// are far.
func didYouMean(word string, known []string) string {
	slices.Sort(known)
	best, least := "", max(1, min(3, len(word)/3))+1
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// distance counts the letters to add, remove, replace, or swap with their neighbour,
// that turn one word into the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
