package nodeconfig

import "errors"

// ErrDocker says why nothing is written for Docker behind cri-dockerd.
var ErrDocker = errors.New("there is no file to write for Docker: a node of cri-dockerd has no handler to rely on but its default, " +
	"so it belongs in no sandbox pool. Older releases of cri-dockerd refuse every other handler; newer ones take it for a " +
	"runtime of Docker's daemon.json, and Docker knows containers, not pods: each would be in a sandbox of its own. " +
	"Run containerd or CRI-O on the nodes of sandbox pools, and keep the others out of what the RuntimeClasses select")
