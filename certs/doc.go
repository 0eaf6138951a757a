// Package certs provides the serving certificate of the webhook, and follows it while
// it changes.
//
// In mode [Self] every replica keeps one Secret in shape, which holds a CA and a leaf,
// and the CA's certificate in the webhook configurations; in mode [Secret] someone else
// does, and in mode [Directory] it is files. The pair is read from where it is stored,
// held in memory and never written to a disk, and served only once the API server would
// accept it. docs/decisions/0009-certificates.md says why it is done so.
//
// The package may import cert-controller, client-go and package registration. It
// imports neither package policies nor package catalog. Start reading at
// [Certificates.Run]; what is renewed when is authority.go.
package certs
