package integration

import "testing"

func TestOverheadSpeltOtherwise(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		trust   string
		pod     []trait
		want    string
		patched bool
	}{
		// gvisor's is 50m and 64Mi; heavy's is 300m and 200Mi.
		"kept":                                   {"untrusted", []trait{class("gvisor"), overhead("0.05", "65536Ki")}, "gvisor", false},
		"replaced":                               {"untrusted", []trait{class("heavy"), overhead("0.3", "204800Ki")}, "gvisor", true},
		"without a class, equal":                 {"untrusted", []trait{overhead("0.050", "67108864")}, "gvisor", true},
		"without a class, as the class has it":   {"untrusted", []trait{overhead("50m", "64Mi")}, "gvisor", true},
		"without a class, another value":         {"untrusted", []trait{overhead("1", "1Gi")}, "gvisor", true},
		"without a class, and the next has none": {"trusted", []trait{overhead("50m", "64Mi")}, "crun", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newNamespace(t, "trust="+test.trust).admitted(newPod(test.pod...))
			wantPlacement(t, pod, test.want)
			if test.patched {
				wantPatched(t, pod, test.trust)
			} else {
				wantUnpatched(t, pod)
			}
		})
	}
}
