package certs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// source is where the pair is stored.
type source interface {
	// read returns tls.crt and tls.key, and ca.crt where it is known.
	read(ctx context.Context, now time.Time, trusted trust) (map[string][]byte, error)
}

// directory holds files that someone else writes.
type directory string

func (d directory) read(context.Context, time.Time, trust) (map[string][]byte, error) {
	data := map[string][]byte{}
	for _, name := range []string{certKey, keyKey} {
		content, err := os.ReadFile(filepath.Join(string(d), name))
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		data[name] = content
	}
	switch ca, err := os.ReadFile(filepath.Join(string(d), caCertKey)); {
	case err == nil:
		data[caCertKey] = ca
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return data, nil
}

// given is a Secret that someone else writes.
type given struct {
	secrets corev1client.SecretInterface
	name    string
}

func (g *given) read(ctx context.Context, _ time.Time, _ trust) (map[string][]byte, error) {
	secret, err := g.secrets.Get(ctx, g.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get secret: %w", err)
	}
	return secret.Data, nil
}

// kept is a Secret that every replica keeps in shape. None of them leads: two that write
// at once are told apart by the resource version, and the loser reads what the other wrote.
type kept struct {
	given
	authority *authority
	log       logr.Logger
}

func (k *kept) read(ctx context.Context, now time.Time, trusted trust) (map[string][]byte, error) {
	secret, err := k.secrets.Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get secret: %w", err)
	}
	next, why, err := k.authority.next(secret.Data, now, trusted)
	if err != nil || why == "" {
		return next, err
	}
	secret.Data = next
	switch _, err = k.secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: owner}); {
	case apierrors.IsConflict(err):
		return k.given.read(ctx, now, trusted)
	case err != nil:
		return nil, fmt.Errorf("update secret: %w", err)
	}
	k.log.Info("certificates renewed", "secret", k.name, "step", why)
	return next, nil
}
