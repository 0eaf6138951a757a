package certs

import (
	"bytes"
	"maps"
	"testing"
	"time"
)

var (
	testOptions = Options{Mode: Self, Namespace: "router", SecretName: "tls", ServiceName: "router"}
	birth       = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

// leafOf parses the leaf of a Secret that must have one.
func leafOf(t *testing.T, data map[string][]byte) *pair {
	t.Helper()
	p, err := parsePair(data[certKey], data[keyKey])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mustNext takes one step and returns what was done.
func mustNext(t *testing.T, a *authority, data map[string][]byte, now time.Time, trusted trust) (map[string][]byte, string) {
	t.Helper()
	before := maps.Clone(data)
	next, why, err := a.next(data, now, trusted)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(before, data, bytes.Equal) {
		t.Fatal("the Secret that was given is changed")
	}
	return next, why
}

// TestAuthorityOverYears lives five years in steps of two days, and looks at each step
// whether what is stored is accepted by whoever trusts what was stored a step before, and
// the other way round: for as long as replicas or API servers may be a step behind.
func TestAuthorityOverYears(t *testing.T) {
	t.Parallel()
	a := newAuthority(&testOptions)
	data, why := mustNext(t, a, nil, birth, trust{})
	if why != "new CA and leaf" {
		t.Fatalf("an empty Secret: %q", why)
	}
	const step = 48 * time.Hour
	leaves, cas := 1, 1
	for now := birth; now.Before(birth.AddDate(5, 0, 0)); now = now.Add(step) {
		// It has been injected since the last step, or was changed in this moment.
		next, why := mustNext(t, a, data, now, trust{bundle: string(data[caCertKey]), since: now.Add(-step)})
		if why == "" {
			if age := now.Sub(leafOf(t, data).leaf().NotBefore); age > leafLife*2/3+backdate+step {
				t.Fatalf("%s: a leaf is %s old", now, age)
			}
			continue
		}
		newer, older := leafOf(t, next), leafOf(t, data)
		for name, c := range map[string]struct {
			p      *pair
			bundle []byte
		}{
			"what is stored": {newer, next[caCertKey]},
			"a replica that is behind, by an API server that is not": {older, next[caCertKey]},
			"a replica that is not behind, by an API server that is": {newer, data[caCertKey]},
		} {
			// The last step drops what nobody serves any more.
			if _, err := c.p.verify(c.bundle, testOptions.dnsName(), now); err != nil {
				t.Fatalf("%s: %s: %s: %v", now, why, name, err)
			}
		}
		if !newer.equal(older) {
			leaves++
		}
		if !bytes.Equal(next[caKeyKey], data[caKeyKey]) {
			cas++
			if !newer.equal(older) {
				t.Fatalf("%s: the leaf changes together with the CA", now)
			}
		}
		data = next
	}
	// 1826 days, 730 and 60 each, and a leaf more for every new CA.
	if cas != 3 || leaves < 28 || leaves > 34 {
		t.Errorf("%d CAs and %d leaves in five years", cas, leaves)
	}
	if n := len(parseBundle(data[caCertKey])); n != 1 {
		t.Errorf("%d CAs are trusted in the end, want 1", n)
	}
}

// TestCARegeneratedOnUpgrade: charts that make a CA in a template make another with every
// upgrade. Nothing here is made anew that is good, however often it is looked at.
func TestCARegeneratedOnUpgrade(t *testing.T) {
	t.Parallel()
	a := newAuthority(&testOptions)
	data, _ := mustNext(t, a, nil, birth, trust{})
	for i := range 100 {
		if next, why := mustNext(t, newAuthority(&testOptions), data, birth.Add(time.Duration(i)*time.Minute), trust{}); why != "" {
			t.Fatalf("look %d: %s", i, why)
		} else if !maps.EqualFunc(next, data, bytes.Equal) {
			t.Fatalf("look %d: something else is stored", i)
		}
	}
}

// TestRotation follows a CA that is replaced by hand: its key is removed.
func TestRotation(t *testing.T) {
	t.Parallel()
	a := newAuthority(&testOptions)
	data, _ := mustNext(t, a, nil, birth, trust{})
	first := leafOf(t, data)
	old := data[caCertKey]
	rotated := maps.Clone(data)
	delete(rotated, caKeyKey)
	now := birth.Add(24 * time.Hour)

	data, why := mustNext(t, a, rotated, now, trust{bundle: string(old), since: birth})
	if why != "new CA, trusted beside the old one" || len(parseBundle(data[caCertKey])) != 2 || !leafOf(t, data).equal(first) {
		t.Fatalf("%s: %d CAs, the same leaf: %t", why, len(parseBundle(data[caCertKey])), leafOf(t, data).equal(first))
	}
	bundle := string(data[caCertKey])
	for name, trusted := range map[string]trust{
		"not injected":            {},
		"injected a moment ago":   {bundle: bundle, since: now.Add(-settle / 2)},
		"another is, for a while": {bundle: string(old), since: birth},
	} {
		if _, why := mustNext(t, a, data, now, trusted); why != "" {
			t.Errorf("%s: %s, want it to wait", name, why)
		}
	}
	now = now.Add(settle)
	data, why = mustNext(t, a, data, now, trust{bundle: bundle, since: now.Add(-settle)})
	if why != "new leaf, of the new CA" || string(data[caCertKey]) != bundle {
		t.Fatalf("%s", why)
	}
	if _, why := mustNext(t, a, data, now.Add(overlap-time.Minute), trust{}); why != "" {
		t.Errorf("%s, before every replica has had its time", why)
	}
	data, why = mustNext(t, a, data, now.Add(overlap), trust{})
	if why != "the old CA is dropped" || len(parseBundle(data[caCertKey])) != 1 {
		t.Fatalf("%s: %d CAs", why, len(parseBundle(data[caCertKey])))
	}
	if _, err := leafOf(t, data).verify(data[caCertKey], testOptions.dnsName(), now); err != nil {
		t.Error(err)
	}
}

// TestRepair: whatever is in the Secret, one step makes a pair that verifies.
func TestRepair(t *testing.T) {
	t.Parallel()
	a := newAuthority(&testOptions)
	good, _ := mustNext(t, a, nil, birth, trust{})
	other, _ := mustNext(t, a, nil, birth, trust{})
	elsewhere, _ := mustNext(t, newAuthority(&Options{Namespace: "elsewhere", ServiceName: "router"}), nil, birth, trust{})
	with := func(changes map[string][]byte) map[string][]byte {
		data := maps.Clone(good)
		maps.Copy(data, changes)
		return data
	}
	for name, test := range map[string]struct {
		data   map[string][]byte
		now    time.Time
		keepCA bool
	}{
		"nothing":                       {map[string][]byte{}, birth, false},
		"no leaf":                       {with(map[string][]byte{certKey: nil}), birth, true},
		"no key":                        {with(map[string][]byte{keyKey: nil}), birth, true},
		"another's key":                 {with(map[string][]byte{keyKey: other[keyKey]}), birth, true},
		"another's leaf":                {with(map[string][]byte{certKey: other[certKey], keyKey: other[keyKey]}), birth, true},
		"for another Service":           {elsewhere, birth, true},
		"no CA":                         {with(map[string][]byte{caCertKey: nil}), birth, false},
		"not PEM":                       {with(map[string][]byte{caCertKey: []byte("?"), certKey: []byte("?")}), birth, false},
		"a leaf that is no CA as one":   {with(map[string][]byte{caCertKey: good[certKey], caKeyKey: good[keyKey], certKey: nil}), birth, false},
		"a leaf that has expired":       {good, birth.Add(leafLife + time.Hour), true},
		"a leaf and a CA that have":     {good, birth.Add(caLife + time.Hour), false},
		"a restored Secret of long ago": {good, birth.AddDate(20, 0, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, why := mustNext(t, a, test.data, test.now, trust{})
			if why == "" {
				t.Fatal("nothing is done")
			}
			if _, err := leafOf(t, data).verify(data[caCertKey], testOptions.dnsName(), test.now); err != nil {
				t.Errorf("after %q: %v", why, err)
			}
			if kept := bytes.Equal(data[caKeyKey], test.data[caKeyKey]); kept != test.keepCA {
				t.Errorf("after %q: the CA is kept: %t, want %t", why, kept, test.keepCA)
			}
			if _, again := mustNext(t, a, data, test.now, trust{}); again != "" {
				t.Errorf("after %q, another step: %q", why, again)
			}
		})
	}
}

// TestLeafEndsWithItsCA: a leaf that outlived its CA would be refused before it expires.
func TestLeafEndsWithItsCA(t *testing.T) {
	t.Parallel()
	a := newAuthority(&testOptions)
	ca, err := a.generator.CreateCACert(birth, birth.Add(72*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	data, _ := mustNext(t, a, map[string][]byte{caCertKey: ca.CertPEM, caKeyKey: ca.KeyPEM}, birth, trust{})
	if got := leafOf(t, data).leaf().NotAfter; !got.Equal(ca.Cert.NotAfter) {
		t.Errorf("the leaf ends %s, its CA %s", got, ca.Cert.NotAfter)
	}
}
