package sources

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// verification is how a bundle is verified: nil where the options say that it is not.
// A file's name without its extension is the key's ID. A single key verifies whatever
// ID a signature names.
func (b *BundleOptions) verification() (*bundle.VerificationConfig, error) {
	if b.Unsigned {
		return nil, nil //nolint:nilnil // OPA's way to say so
	}
	entries, err := os.ReadDir(b.KeysDirectory)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	keys, id := map[string]*bundle.KeyConfig{}, ""
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") { // the links of a mounted Secret
			continue
		}
		path := filepath.Join(b.KeysDirectory, entry.Name())
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the keys: %w", err)
		}
		algorithm, err := algorithmOf(raw)
		if err != nil {
			return nil, fmt.Errorf("read the key %s: %w", path, err)
		}
		if b.Algorithm != "" {
			algorithm = b.Algorithm
		}
		id = strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name()))
		keys[id] = &bundle.KeyConfig{Key: string(raw), Algorithm: algorithm}
	}
	switch len(keys) {
	case 0:
		// Without one OPA would have nothing to look a signature up in.
		return nil, fmt.Errorf("read the keys: no file in %s", b.KeysDirectory)
	case 1:
		return bundle.NewVerificationConfig(keys, id, "", nil), nil
	}
	return bundle.NewVerificationConfig(keys, "", "", nil), nil
}

// algorithmOf is the usual signature algorithm of a public key.
func algorithmOf(raw []byte) (string, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return "", fmt.Errorf("no PEM block in it")
	}
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = certificate.PublicKey
		}
	default:
		return "", fmt.Errorf("a PEM block %q, want a public key", block.Type)
	}
	if err != nil {
		return "", err
	}
	switch key := key.(type) {
	case *rsa.PublicKey:
		return "RS256", nil
	case *ecdsa.PublicKey:
		switch key.Params().BitSize {
		case 256:
			return "ES256", nil
		case 384:
			return "ES384", nil
		case 521:
			return "ES512", nil
		}
	}
	return "", fmt.Errorf("a %T, want RSA or ECDSA on P-256, P-384 or P-521", key)
}
