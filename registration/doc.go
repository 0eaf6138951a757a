// Package registration is what the API server is told of the webhook: whom to trust,
// and what to ask about.
//
// The chart renders both webhook configurations with everything but two fields, which
// the product applies as a field manager of its own: caBundle, the CA that package
// certs made, and rules. A webhook without rules is asked about nothing, so an
// installation whose image never runs refuses no pod; see docs/decisions/0010-arming.md.
//
// The package imports client-go and nothing else of this module. Start reading at
// [Registration].
package registration
