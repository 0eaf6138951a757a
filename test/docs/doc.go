// Package docs tests the documentation: links lead somewhere, commands print what a
// page shows, policies and manifests load, and what the product names is named.
//
// The pages are README.md, CONTRIBUTING.md and every Markdown file below docs. A
// fenced block is tested by its language:
//
//	console  run from the root of the repository; see [TestConsole]
//	rego     loaded with the shipped policy; see [TestRego]
//	yaml     decoded as what it says it is; see [TestYAML]
//	sh       not run: it needs a cluster, or takes minutes
//
// The package holds tests only. Start reading at pages_test.go.
package docs
