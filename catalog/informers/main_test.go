package informers

import (
	"os"
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background()) // or controller-runtime, which starts the control plane, complains
	os.Exit(m.Run())
}
