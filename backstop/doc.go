// Package backstop keeps the parameters of the in-process guards: annotations of a
// ServiceAccount that the chart's admission policies read, so that the API server can tell, without the webhook,
// which namespaces are trusted how far and which RuntimeClasses isolate.
//
// [Parameters] says what is in it, and knows no client and no clock; [Writer] writes it,
// on every replica alike. The policies themselves are the chart's. The package imports
// packages policies and catalog and a Kubernetes client, and never package webhook: what
// is guarded must not depend on what it is guarded against.
//
// Start reading at [Parameters].
package backstop
