// Package schemas holds the JSON schemas that policies are compiled against:
// input.json, generated from the Kubernetes API's own OpenAPI; catalog.json and
// config.json, the data; and decision.json, the answer.
package schemas

import "embed"

// Files holds the schemas by file name.
//
//go:embed *.json
var Files embed.FS
