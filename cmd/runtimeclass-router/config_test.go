package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const head = "apiVersion: runtimeclass-router.io/v1alpha1\nkind: RouterConfiguration\n"

func TestDefaultConfigIsValid(t *testing.T) {
	t.Parallel()
	c, err := loadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(policies.DefaultConfig(), c.router); diff != "" {
		t.Error(diff)
	}
}

func TestConfigFileLiesOverTheDefaults(t *testing.T) {
	t.Parallel()
	c, err := loadConfig(write(t, head+"webhook: {deadline: 1s}\nrouter: {gpuRuntimes: [kata-qemu]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Webhook.Deadline.Duration != time.Second || c.Webhook.Port != 9443 || c.Webhook.Drain.Duration != 5*time.Second {
		t.Errorf("webhook is %+v", c.Webhook)
	}
	if diff := cmp.Diff([]string{"kata-qemu"}, c.router.GPURuntimes); diff != "" {
		t.Error(diff)
	}
	if len(c.router.Levels) != 2 {
		t.Errorf("levels are %v", c.router.Levels)
	}
}

// TestConfigNamesEveryFault: all at once, each with its field.
func TestConfigNamesEveryFault(t *testing.T) {
	t.Parallel()
	path := write(t, head+"webhook: {prot: 1, deadlin: 1s}\nmetric: {}\nrouter: {levls: []}\n")
	_, err := loadConfig(path)
	for _, want := range []string{path, `unknown field "webhook.prot"`, `unknown field "webhook.deadlin"`, `unknown field "metric"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q in %v", want, err)
		}
	}
	_, err = loadConfig(write(t, "apiVersion: v1\nkind: ConfigMap\nrouter: {levls: []}\n"))
	for _, want := range []string{"want runtimeclass-router.io/v1alpha1, RouterConfiguration", `router: unknown field "levls"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q in %v", want, err)
		}
	}
	c, err := loadConfig(write(t, head+`
webhook: {port: 0, deadline: 0s, drain: -1s}
certs: {mode: magic}
audit: {interval: 1s, podsPerSecond: 0, evictionsPerMinute: 61, exemptNamespaces: [team-*]}
log: {format: xml}
policies: {mode: replace}
router:
  unlabelledNamespaces: {trust: nobody, mode: quiet}
`))
	if err != nil {
		t.Fatal(err)
	}
	err = c.validate()
	for _, want := range []string{
		"webhook.port", "webhook.deadline", "webhook.drain", "certs.mode", "log.format",
		"audit.interval", "audit.podsPerSecond", "audit.evictionsPerMinute", "audit.exemptNamespaces[0]", "audit.lease.namespace", "audit.lease.name", "policies.directory",
		"router.unlabelledNamespaces.trust", "router.unlabelledNamespaces.mode",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q in %v", want, err)
		}
	}
}

func TestConfigThatCannotBeRead(t *testing.T) {
	t.Parallel()
	if _, err := loadConfig(filepath.Join(t.TempDir(), "absent.yaml")); err == nil {
		t.Error("an absent file is accepted")
	}
	if _, err := loadConfig(write(t, head+"webhook: {port: [}\n")); err == nil {
		t.Error("a file that is no YAML is accepted")
	}
	if _, err := loadConfig(write(t, head+"log: {level: 0}\nlog: {level: 1}\n")); err == nil {
		t.Error("a key that is given twice is accepted")
	}
}

// TestServeRefusesAFaultyConfiguration before it asks anything of a cluster.
func TestServeRefusesAFaultyConfiguration(t *testing.T) {
	t.Parallel()
	_, _, err := run(t, "", "serve", "--config", write(t, head), "--port", "70000", "--log-format", "xml")
	if err == nil || !strings.Contains(err.Error(), "webhook.port") || !strings.Contains(err.Error(), "log.format") {
		t.Errorf("got %v", err)
	}
}

func TestPolicyDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.rego"), []byte("package router.custom\n\ndenials contains \"no\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
	out, _, err := run(t, pod, "route", "-f", "-", "-o", "json", "--config", write(t, head+"policies: {directory: "+dir+"}\n"))
	if err != nil || !strings.Contains(out, `"action": "deny"`) {
		t.Errorf("the hook was not asked: %v\n%s", err, out)
	}
	_, _, err = run(t, pod, "route", "-f", "-", "--config", write(t, head+"policies: {mode: replace, directory: "+dir+"}\n"))
	if err == nil || !strings.Contains(err.Error(), "no rule data.router.decision") {
		t.Errorf("a policy without an entry point: %v", err)
	}
}

// TestBundleIsVerifiedOrSaidNotToBe: it cannot be forgotten.
func TestBundleIsVerifiedOrSaidNotToBe(t *testing.T) {
	t.Parallel()
	for bundle, want := range map[string]string{
		"{url: 'https://a/b'}": "policies.bundle.keysDirectory: Required value: name the directory with the public keys that verify the bundle, or write unsigned: true",
		"{url: 'https://a/b', unsigned: true, keysDirectory: /k}":       "policies.bundle.unsigned",
		"{url: 'https://a/b', keysDirectory: /k, verify: true}":         `unknown field "policies.bundle.verify"`,
		"{url: 'https://a/b', keysDirectory: /k, pollInterval: 1ms}":    "policies.bundle.pollInterval",
		"{url: 'https://a/b', unsigned: true, persistDirectory: below}": "policies.bundle.persistDirectory",
		"{url: 'https://a/b', keysDirectory: /k, algorithm: none}":      "policies.bundle.algorithm",
		"{keysDirectory: /k}": "policies.bundle.url",
		"{url: 'oci://a/b:c', keysDirectory: /k, persistDirectory: ''}":  "policies.bundle.persistDirectory",
		"{url: 'http://a/b', unsigned: true, credentialsDirectory: '/'}": "policies.bundle.url",
	} {
		_, _, err := run(t, "", "serve", "--config", write(t, head+"policies: {bundle: "+bundle+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bundle, err, want)
		}
	}
}

// TestRouteNotesWhatItDoesNotRead: a preview must not pass for the whole policy.
func TestRouteNotesWhatItDoesNotRead(t *testing.T) {
	t.Parallel()
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
	config := write(t, head+"policies: {configMaps: {namespace: router}, bundle: {url: 'https://a/b', unsigned: true}}\n")
	_, notes, err := run(t, pod, "route", "-f", "-", "--config", config)
	for _, want := range []string{"policies.configMaps.namespace are not read", "policies.bundle.url is not fetched"} {
		if err != nil || !strings.Contains(notes, want) {
			t.Errorf("%v; notes lack %q: %s", err, want, notes)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "", "version")
	if err != nil || !strings.HasPrefix(out, "runtimeclass-router ") {
		t.Errorf("%q, %v", out, err)
	}
}
