package sources

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// signed are options that verify with the keys in a directory.
func (s *bundleServer) signed(t *testing.T, keys map[string]string) BundleOptions {
	t.Helper()
	o := s.options(t)
	o.Unsigned, o.KeysDirectory = false, t.TempDir()
	writeFiles(t, o.KeysDirectory, keys)
	return o
}

// TestBundleSignature: a bundle that is not signed, or by somebody else, or that was
// changed after it was signed, does not take the place of the last good one.
func TestBundleSignature(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		us, others := newSigner(t), newSigner(t)
		s.put(pack(t, modulesOne, "r1", us))
		deliveries := run(t, s.signed(t, map[string]string{"policy.pem": string(us.public)}).source(patience))
		await(t, deliveries, holds(modulesOne))
		for want, raw := range map[string][]byte{
			"bundle missing .signatures.json file": pack(t, modulesTwo, "", nil),
			"failed to verify JWT signature":       pack(t, modulesTwo, "", others),
			"not included in bundle signature":     merge(t, pack(t, modulesOne, "", us), "/other.rego", "package other\n"),
		} {
			s.put(raw)
			if d := await(t, deliveries, fails(want)); d.Modules != nil {
				t.Errorf("%s: delivered %v", want, d.Modules)
			}
		}
		s.put(pack(t, modulesTwo, "r2", us))
		await(t, deliveries, holds(modulesTwo))
	})
}

// TestBundleKeysRotate: keys are read with each poll, and a signature picks its own.
func TestBundleKeysRotate(t *testing.T) {
	t.Parallel()
	s := newHTTPServer(t)
	before, after := newSigner(t), newSigner(t)
	o := s.signed(t, map[string]string{"old.pem": string(before.public)})
	s.put(pack(t, modulesOne, "", before))
	deliveries := run(t, o.source(patience))
	await(t, deliveries, holds(modulesOne))
	s.put(pack(t, modulesTwo, "", after))
	await(t, deliveries, fails("failed to verify JWT signature"))
	writeFiles(t, o.KeysDirectory, map[string]string{"policy.pem": string(after.public)})
	await(t, deliveries, holds(modulesTwo))
}

// TestSignedBundleTakenForUnsigned: OPA verifies what is signed, and there is no key.
func TestSignedBundleTakenForUnsigned(t *testing.T) {
	t.Parallel()
	s := newHTTPServer(t)
	s.put(pack(t, modulesOne, "", newSigner(t)))
	await(t, run(t, s.options(t).source(patience)), fails("the bundle is signed", "keysDirectory"))
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	s := newHTTPServer(t)
	s.put(pack(t, modulesOne, "", nil))
	private := newSigner(t).config.Key
	for want, keys := range map[string]map[string]string{
		"no file in":                   {"..data": ""},
		"no PEM block in it":           {"a.pem": "secret"},
		`"EC PRIVATE KEY", want a pub`: {"a.pem": private},
	} {
		await(t, run(t, s.signed(t, keys).source(patience)), fails("read the key", want))
	}
	o := s.signed(t, nil)
	o.KeysDirectory = filepath.Join(o.KeysDirectory, "gone")
	await(t, run(t, o.source(patience)), fails("read the keys", "gone"))
}

func TestAlgorithms(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey)})
	for want, raw := range map[string][]byte{"RS256": pkcs1, "ES256": newSigner(t).public} {
		if got, err := algorithmOf(raw); got != want || err != nil {
			t.Errorf("%q, %v, want %s", got, err, want)
		}
	}
	o := BundleOptions{KeysDirectory: t.TempDir(), Algorithm: "PS256"}
	writeFiles(t, o.KeysDirectory, map[string]string{"a.b.pem": string(pkcs1)})
	config, err := o.verification()
	if err != nil || config.KeyID != "a.b" || config.PublicKeys["a.b"].Algorithm != "PS256" {
		t.Errorf("%+v, %v", config, err)
	}
}

// TestRestartWithoutTheServer: what was in force before is, once it is verified anew, and
// only where it is what is asked for.
func TestRestartWithoutTheServer(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *bundleServer) {
		us := newSigner(t)
		o := s.signed(t, map[string]string{"policy.pem": string(us.public)})
		s.put(pack(t, modulesOne, "r1", us))
		first := await(t, run(t, o.source(patience)), holds(modulesOne))
		if _, err := o.persisted(); err == nil {
			t.Error("kept before it was in force")
		}
		if err := first.Keep(); err != nil {
			t.Fatal(err)
		}
		s.answerWith(fail500)
		kept := await(t, run(t, o.source(patience)), holds(modulesOne))
		if !kept.Persisted || kept.Revision != "r1" || !fails("500")(kept) || kept.Keep != nil {
			t.Errorf("delivered %+v", kept)
		}

		elsewhere := o
		elsewhere.URL = strings.Replace(o.URL, "polic", "other-polic", 1)
		await(t, run(t, elsewhere.source(patience)), fails("no earlier bundle"))

		stranger := o
		stranger.KeysDirectory = t.TempDir()
		writeFiles(t, stranger.KeysDirectory, map[string]string{"policy.pem": string(newSigner(t).public)})
		if d := await(t, run(t, stranger.source(patience)), fails("failed to verify JWT signature")); d.Modules != nil {
			t.Errorf("delivered %v", d.Modules)
		}

		// The server is back, with something else.
		again := run(t, o.source(patience))
		await(t, again, holds(modulesOne))
		s.put(pack(t, modulesTwo, "r2", us))
		s.answerWith(nil)
		if d := await(t, again, holds(modulesTwo)); d.Persisted || d.Err != nil {
			t.Errorf("delivered %+v", d)
		}
	})
}

// TestKeepReplaces: the file is never seen half written, and there is one.
func TestKeepReplaces(t *testing.T) {
	t.Parallel()
	o := BundleOptions{URL: "https://example.com/b", PersistDirectory: filepath.Join(t.TempDir(), "made"), Unsigned: true}
	for _, modules := range []policies.Modules{modulesOne, modulesTwo} {
		if err := o.persist(pack(t, modules, "", nil)); err != nil {
			t.Fatal(err)
		}
		kept, err := o.persisted()
		if err != nil || !holds(modules)(deliveryOf(kept)) {
			t.Errorf("%+v, %v", kept, err)
		}
	}
	if files, err := filepath.Glob(filepath.Join(o.PersistDirectory, "*")); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
	writeFiles(t, o.PersistDirectory, map[string]string{filepath.Base(o.kept()): "half"})
	if _, err := o.persisted(); err == nil || !strings.Contains(err.Error(), "read bundle "+o.kept()) {
		t.Errorf("half a file: %v", err)
	}
}
