package policies

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// capabilities are what a policy may call: nothing that reaches the network, reads
// a clock or the process, draws a random number or answers differently from one
// call to the next. A request's day comes in as input.request.date.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.Nondeterministic || slices.Contains(refused, b.Name)
	})
	c.AllowNet = []string{}
	return c
}

// refused builtins are deterministic by their declaration and unwelcome all the
// same: tokens are checked against the clock, schemas may be fetched, trace writes
// to a log, and a shift by a large number takes all memory there is.
var refused = []string{
	"io.jwt.decode_verify", "io.jwt.encode_sign", "io.jwt.encode_sign_raw",
	"json.match_schema", "json.verify_schema", "graphql.schema_is_valid",
	"trace", "bits.lsh",
}
