// Package plan evaluates compiled policies by the plans that OPA makes of them.
//
// OPA has two forms of a compiled policy: the rules, which its own evaluator (package
// topdown) interprets by unification, and the plan (package ir), an imperative program
// that it makes of them for other evaluators, such as its WebAssembly target. This package
// is such an evaluator. It takes a fraction of the time and of the memory, and gives the
// same answers: it is held to OPA's own cases of what Rego means (see the tests).
//
// It says no more of an error than that there is one. Whoever is given one asks topdown,
// which has the say, and the message with file and line.
package plan
