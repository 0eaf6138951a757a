// Package plugin starts the product as what it is installed as for a real kubectl: a
// plugin, and the program that completes its command lines.
//
// The package holds tests only.
package plugin
