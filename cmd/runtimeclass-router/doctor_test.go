package main

import (
	"strings"
	"testing"
)

// TestDoctorOfManifests is golden for what files can tell.
func TestDoctorOfManifests(t *testing.T) {
	t.Parallel()
	args := []string{"doctor", "-f", "../../docs/examples/doctor/pods.yaml", "-f", "testdata/why/denied.yaml", "--cluster", "../../examples/cluster.yaml"}
	for name, output := range map[string][]string{"text": nil, "json": {"-o", "json"}} {
		out, errOut, err := run(t, "", append(args, output...)...)
		if status(err) != 3 || errOut != "" {
			t.Errorf("%s: status %d: %v\n%s", name, status(err), err, errOut)
		}
		golden(t, "../doctor/manifests."+name, out)
	}
}

// TestDoctorStatus follows the weightiest finding.
func TestDoctorStatus(t *testing.T) {
	t.Parallel()
	live := "webhooks,failure-policy,exempt,backstop,custody,fallback,parameters,ca-bundle,certificate"
	for name, test := range map[string]struct {
		args []string
		want int
	}{
		"fine":    {[]string{"-f", "testdata/why/routed.yaml", "--cluster", "cluster.yaml", "--skip", live + ",policy,exceptions"}, 0},
		"unknown": {[]string{"-f", "testdata/why/routed.yaml", "--cluster", "cluster.yaml"}, 2},
		"config":  {[]string{"-f", "testdata/why/exempted.yaml", "--cluster", "cluster.yaml", "--config", "testdata/why/exempted.config.yaml", "--skip", live}, 0},
		"warning": {[]string{"-f", "../../docs/examples/doctor/pods.yaml", "--cluster", "cluster.yaml", "--skip", live + ",policy,exceptions"}, 2},
		"error":   {[]string{"-f", "testdata/why/denied.yaml", "--cluster", "cluster.yaml", "--skip", live}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, _, err := run(t, "", append([]string{"doctor"}, test.args...)...); status(err) != test.want {
				t.Errorf("status %d, want %d: %v\n%s", status(err), test.want, err, out)
			}
		})
	}
}

func TestDoctorRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"format":          {[]string{"-o", "yaml"}, "use text or json"},
		"another check":   {[]string{"--skip", "pool"}, "the checks are pools, floors"},
		"files and live":  {[]string{"-f", "x", "--context", "y"}, "give one of them"},
		"no file":         {[]string{"-f", "no-such-file"}, "no-such-file"},
		"a broken config": {[]string{"-f", "testdata/why/routed.yaml", "--config", "testdata/why/routed.yaml"}, "configuration"},
		"no cluster":      {[]string{"--kubeconfig", "no-such-file"}, "find the cluster"},
	} {
		out, _, err := run(t, "", append([]string{"doctor"}, test.args...)...)
		if status(err) != 1 || !strings.Contains(err.Error(), test.want) || out != "" {
			t.Errorf("%s: want %q, got %v\n%s", name, test.want, err, out)
		}
	}
}

// TestWhyAndDoctorHelp: each says what it is for with an example.
func TestWhyAndDoctorHelp(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"why", "doctor"} {
		out, _, err := run(t, "", command, "--help")
		if err != nil || !strings.Contains(out, "Examples:\n  ") || !strings.Contains(out, "Exit status: ") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}
