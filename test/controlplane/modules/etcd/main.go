// Command etcd is the etcd server. The upstream command lives in a module of its own that carries
// replace directives, so it cannot be required; it does no more than this.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
