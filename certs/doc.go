// Package certs provides the serving certificate of the webhook: self-managed, or
// given in a directory.
//
// In both modes the server reads tls.crt and tls.key from a directory, which may
// change under it. In mode [Self] a rotator makes a CA and a leaf, keeps them in a
// Secret that is mounted as that directory, and writes the CA into both webhook
// configurations; in mode [Directory] someone else does all of that.
//
// The package may import controller-runtime and cert-controller. It imports neither
// package policies nor package catalog. Start reading at [Certificates.Wait].
package certs
