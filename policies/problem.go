package policies

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Problem is one fault of a policy, as an editor or a pipeline reads it.
type Problem struct {
	// File is empty where the fault has no place, and Line and Column count from 1; 0
	// stands for none.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Message is one line.
	Message string `json:"message"`
	// Hint says what to do about it; empty where nothing is certain.
	Hint string `json:"hint"`
}

// String is the problem as "file:line:column: message (hint)", on one line.
func (p Problem) String() string {
	var s strings.Builder
	if p.File != "" {
		s.WriteString(p.File)
		for _, n := range []int{p.Line, p.Column} {
			if n > 0 {
				fmt.Fprintf(&s, ":%d", n)
			}
		}
		s.WriteString(": ")
	}
	s.WriteString(p.Message)
	if p.Hint != "" {
		fmt.Fprintf(&s, " (%s)", p.Hint)
	}
	return s.String()
}

// LocatedError is a fault with its place in a policy file, for faults that OPA does
// not place itself.
type LocatedError struct {
	File         string // empty where the place is not known
	Line, Column int
	Hint         string
	Err          error
}

// Error implements error, in the form of OPA's own errors.
func (e *LocatedError) Error() string {
	if e.File == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the fault itself.
func (e *LocatedError) Unwrap() error { return e.Err }

// locate places an error; location may be nil.
func locate(location *ast.Location, hint string, err error) error {
	if location == nil {
		return &LocatedError{Hint: hint, Err: err}
	}
	return &LocatedError{File: location.File, Line: location.Row, Column: location.Col, Hint: hint, Err: err}
}

// Problems takes an error of loading or trying a policy apart into the faults that it
// joins, sorted by place. One fault that several self-test pods show is one problem.
func Problems(err error) []Problem {
	var found []Problem
	var shown []shownProblem
	for _, leaf := range leaves(err) {
		var test *SelfTestError
		if !errors.As(leaf, &test) {
			found = append(found, problemOf(leaf))
			continue
		}
		p := problemOf(test.Err)
		i := slices.IndexFunc(shown, func(s shownProblem) bool { return s.same(p) })
		if i < 0 {
			i, shown = len(shown), append(shown, shownProblem{Problem: p})
		}
		// One of several wordings speaks, whatever the order of the pods.
		shown[i].Message = min(shown[i].Message, p.Message)
		shown[i].pods = append(shown[i].pods, test.Test.Name)
	}
	for _, s := range shown {
		slices.Sort(s.pods)
		s.Message += "; shown by self-test pod " + strings.Join(slices.Compact(s.pods), ", ")
		found = append(found, s.Problem)
	}
	slices.SortFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(found)
}

// shownProblem is a problem with the self-test pods that show it.
type shownProblem struct {
	Problem
	pods []string
}

// same reports whether two pods show one fault: the same words, or the same advice at
// the same place, where the words differ by what is in the pod.
func (s shownProblem) same(p Problem) bool {
	if s.File == "" || s.Hint == "" {
		return s.Problem == p
	}
	return s.File == p.File && s.Line == p.Line && s.Column == p.Column && s.Hint == p.Hint
}

// leaves are the errors that err joins, in any depth.
func leaves(err error) []error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked level by level
	case nil:
		return nil
	case *SelfTestError, *LocatedError:
		return []error{err}
	case ast.Errors:
		var all []error
		for _, one := range e {
			all = append(all, one)
		}
		return all
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		if below := leaves(e.Unwrap()); len(below) > 1 {
			return below
		}
	}
	return []error{err}
}

// problemOf describes one fault. What wraps an error of OPA's stays in the message,
// without the place that OPA writes at its front.
func problemOf(err error) Problem {
	var list ast.Errors
	if errors.As(err, &list) && len(list) == 1 {
		err = list[0] // the list does not say of itself what is in it
	}
	var (
		located  *LocatedError
		compiled *ast.Error
		failed   *topdown.Error
		file     *fs.PathError
	)
	switch {
	case errors.As(err, &compiled):
		p := Problem{Message: fold(compiled.Code + ": " + compiled.Message), Hint: hintFor(compiled)}
		return p.at(compiled.Location)
	case errors.As(err, &located):
		return Problem{File: located.File, Line: located.Line, Column: located.Column, Message: fold(located.Err.Error()), Hint: located.Hint}
	case errors.As(err, &failed):
		own := failed.Code + ": " + failed.Message
		p := Problem{Message: fold(strings.Replace(err.Error(), failed.Error(), own, 1)), Hint: hintForEvaluation(failed)}
		return p.at(failed.Location)
	case errors.As(err, &file):
		p := Problem{File: file.Path, Message: fold(fmt.Sprintf("%s: %v", file.Op, file.Err))}
		if errors.Is(err, fs.ErrNotExist) && file.Op == "open" {
			p.Hint = "a link to nothing, or a directory that is still being written: write all files first, then put the directory in place"
		}
		return p
	}
	return Problem{Message: fold(err.Error()), Hint: hintForShape(err)}
}

func (p Problem) at(location *ast.Location) Problem {
	if location != nil {
		p.File, p.Line, p.Column = location.File, location.Row, location.Col
	}
	return p
}

// fold puts a message on one line.
func fold(message string) string { return strings.Join(strings.Fields(message), " ") }
