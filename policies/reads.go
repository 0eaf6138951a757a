package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/dependencies"
)

// reads is the part of a document that a policy may look at, as a tree of keys. A policy
// that is told no more than that cannot tell the difference.
type reads struct {
	all  bool // everything from here on
	keys map[string]*reads
	each *reads // of each item of a list
	// prefixes are what keys begin with whose values are read.
	prefixes []string
}

// everything is what is read of a document that nothing is known about.
var everything = &reads{all: true}

// of returns what is read below a key, nil for nothing.
func (r *reads) of(key string) *reads {
	if r == nil || r.all {
		return r
	}
	if slices.ContainsFunc(r.prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return everything
	}
	return r.keys[key]
}

// items returns what is read of each item of a list, nil for nothing.
func (r *reads) items() *reads {
	if r == nil || r.all {
		return r
	}
	return r.each
}

// at returns the place of a path; it is made where it is missing.
func (r *reads) at(path ...string) *reads {
	for _, key := range path {
		if r.all {
			return r
		}
		if r.keys == nil {
			r.keys = map[string]*reads{}
		}
		if r.keys[key] == nil {
			r.keys[key] = &reads{}
		}
		r = r.keys[key]
	}
	return r
}

// add marks everything from path on as read.
func (r *reads) add(path ...string) { *r.at(path...) = reads{all: true} }

// finer says what the shipped modules read where the compiler knows no more than that they
// read all: it follows a path down to the first key that a variable stands for, and not
// into what a variable holds.
func finer(config Config) map[string]func(*reads) {
	finer := map[string]func(*reads){
		"pod.metadata.annotations": func(r *reads) {
			if at := r.at("pod", "metadata", "annotations"); !at.all {
				at.prefixes = runtimePrefixes
			}
		},
		// rego/exceptions.rego compares the labels that the configuration names.
		"pod.metadata.labels": func(r *reads) {
			for _, exception := range config.Exceptions {
				for label := range exception.PodLabels {
					r.add("pod", "metadata", "labels", label)
				}
			}
		},
	}
	for i, list := range splitLists {
		fields := ownerFields
		if hasContainers(i) {
			fields = containerFields
		}
		finer["pod."+list.part+"."+list.field] = func(r *reads) {
			if at := r.at("pod", list.part, list.field); !at.all {
				at.each = &reads{}
				for _, field := range fields {
					at.each.add(field)
				}
			}
		}
	}
	return finer
}

// runtimePrefixes are what rego/uses.rego looks for in annotations.
var runtimePrefixes = []string{"dev.gvisor.", "io.katacontainers.", "io.kubernetes.cri.untrusted-workload"}

// ownerFields are what rego/placement.rego reads of an owner.
var ownerFields = []string{"kind"}

// containerFields are what rego/uses.rego reads of a container: not its image, and not its
// environment, so that a new version of an application is decided on like the one before.
var containerFields = []string{"resources", "securityContext", "volumeDevices", "volumeMounts"}

// inputReads returns what of input the entry point depends on.
func inputReads(compiler *ast.Compiler, modules Modules, config Config) (*reads, error) {
	bases, err := dependencies.Base(compiler, ast.MustParseBody(entrypoint))
	if err != nil {
		return nil, fmt.Errorf("list what the policy reads: %w", err)
	}
	root, authored := &reads{}, &reads{}
	shipped := Shipped()
	for _, name := range slices.Sorted(maps.Keys(compiler.Modules)) {
		if shipped[name] == modules[name] {
			continue
		}
		for _, rule := range compiler.Modules[name].Rules {
			read, err := dependencies.Base(compiler, rule)
			if err != nil {
				return nil, fmt.Errorf("list what %s reads: %w", rule.Ref(), err)
			}
			for _, ref := range read {
				if ref.HasPrefix(ast.InputRootRef) {
					authored.add(stringsOf(ref)...)
				}
			}
		}
	}
	finer := finer(config)
	for _, ref := range bases {
		if !ref.HasPrefix(ast.InputRootRef) {
			continue
		}
		path := stringsOf(ref)
		if narrow, ok := finer[strings.Join(path, ".")]; ok && !authored.has(path) {
			narrow(root)
			continue
		}
		root.add(path...)
	}
	return root, nil
}

// has reports whether everything from path on is read.
func (r *reads) has(path []string) bool {
	for _, key := range path {
		r = r.of(key)
	}
	return r != nil && r.all
}
