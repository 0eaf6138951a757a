package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// BenchmarkPolicyDiff compares a generated cluster of 20,000 pods under two policies and
// a changed label, from a file and live, each time in a process of its own, whose peak
// memory is reported. Run it with -benchtime 1x.
func BenchmarkPolicyDiff(b *testing.B) {
	const n = 20_000
	binary := filepath.Join(b.TempDir(), "runtimeclass-router")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	pods := generatedPods(b, n)
	for name, from := range map[string][]string{
		"file": {"-f", writePodList(b, pods)},
		"live": {"--kubeconfig", (&pagingServer{pods: pods}).kubeconfig(b)},
	} {
		for change, args := range map[string][]string{
			"policy": {"--new", movedPolicy},
			"label":  {"--set-label", "ns-04:runtimeclass-router.io/trust=untrusted"},
		} {
			b.Run(name+"/"+change, func(b *testing.B) {
				var peak, cpu float64
				for b.Loop() {
					cmd := exec.CommandContext(b.Context(), binary, append(append([]string{"policy", "diff"}, from...), args...)...)
					var out, errOut bytes.Buffer
					cmd.Stdout, cmd.Stderr = &out, &errOut
					if err := cmd.Start(); err != nil {
						b.Fatal(err)
					}
					peak = max(peak, stack.PeakMemory(cmd.Process.Pid))
					err := cmd.Wait()
					if status := cmd.ProcessState.ExitCode(); status != exitNewlyDenied || !strings.Contains(out.String(), " of 20000 change") {
						b.Fatalf("status %d: %v\n%s", status, err, errOut.String())
					}
					cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
				}
				b.ReportMetric(peak/1e3, "peak-MB")
				b.ReportMetric(cpu/float64(b.N), "cpu-s/op")
			})
		}
	}
}
