package main

import (
	"encoding/json"
	"encoding/xml"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// a policy with one test that passes, one that fails and one that is to come, and
// fixtures of every kind.
const testedPolicy = "testdata/policy/tested"

var seconds = regexp.MustCompile(`("seconds": |time=")[0-9.e-]+`)

// TestPolicyTestFormats are golden: what each format prints.
func TestPolicyTestFormats(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "json", "junit"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			out, _, err := run(t, "", "policy", "test", testedPolicy, "--coverage", "-o", format)
			if status(err) != 1 {
				t.Errorf("tests fail, and the status is %d: %v", status(err), err)
			}
			golden(t, "test."+format, seconds.ReplaceAllString(out, "${1}0"))
			switch format {
			case "json":
				err = json.Unmarshal([]byte(out), &testReport{})
			case "junit":
				err = xml.Unmarshal([]byte(out), &junitSuite{})
			default:
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPolicyTestRunsWhatMatches(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "", "policy", "test", testedPolicy, "--run", "passes")
	if err != nil || out != "PASS  data.custom_test.test_that_passes\nPASS  fixtures/passes\n2 passed, 0 failed\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPolicyTestThreshold(t *testing.T) {
	t.Parallel()
	arguments := []string{"policy", "test", testedPolicy, "--run", "passes", "--coverage", "--threshold"}
	if _, _, err := run(t, "", append(arguments, "20")...); err != nil {
		t.Error(err)
	}
	if _, _, err := run(t, "", append(arguments, "99")...); err == nil || !strings.Contains(err.Error(), "--threshold asks for 99 %") {
		t.Errorf("got %v", err)
	}
}

// TestPolicyTestBench measures one fixture, and compares no figures.
func TestPolicyTestBench(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a second")
	}
	out, _, err := run(t, "", "policy", "test", testedPolicy, "--run", "fixtures/passes", "--bench")
	if err != nil || !regexp.MustCompile(`fixtures/passes: [1-9][0-9]* ns and [1-9][0-9]* allocations per decision`).MatchString(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPolicyTestRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a threshold of nothing": {[]string{testedPolicy, "--threshold", "5"}, "--threshold is of use only with --coverage"},
		"a threshold":            {[]string{testedPolicy, "--coverage", "--threshold", "101"}, "from 0 to 100"},
		"a pattern":              {[]string{testedPolicy, "--run", "("}, "--run: error parsing regexp"},
		"a format":               {[]string{testedPolicy, "-o", "xml"}, "use table, json or junit"},
		"nothing to run":         {[]string{testedPolicy, "--run", "nowhere"}, "nothing to run"},
		"a broken policy":        {[]string{brokenPolicies + "/unknown-pod-field"}, "custom.rego:3:26: rego_type_error"},
		"a dangling path":        {[]string{"testdata/absent"}, "no such file"},
	} {
		out, _, err := run(t, "", append([]string{"policy", "test"}, test.args...)...)
		if status(err) != 1 || !strings.Contains(out+err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v\n%s", name, test.want, err, out)
		}
	}
}

// TestPolicyInit: what it writes passes check, test and fmt, and is not written twice.
func TestPolicyInit(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "policy")
	if out, _, err := run(t, "", "policy", "init", directory); err != nil || strings.Count(out, "\n") != 6 {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, _, err := run(t, "", "policy", "check", directory); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
	if out, _, err := run(t, "", "policy", "test", directory, "--coverage", "--threshold", "100"); err != nil || !strings.Contains(out, "9 passed, 0 failed") {
		t.Errorf("test: %v\n%s", err, out)
	}
	if out, _, err := run(t, "", "policy", "fmt", "--list", directory); err != nil || out != "" {
		t.Errorf("fmt: %v\n%s", err, out)
	}
	out, _, err := run(t, "", "policy", "init", directory)
	if err == nil || out != "" || !strings.Contains(err.Error(), "custom.rego exists") {
		t.Errorf("written over: %v\n%s", err, out)
	}
}
