package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"
)

//go:embed policy_starter
var starter embed.FS

func newPolicyInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init DIR",
		Short: "Write a policy to start from",
		Long: `Write a directory with every hook of the shipped policy, tests, a fixture, and a page
that says which commands to run. It is made if it is not there. Nothing is overwritten:
if one of the files exists, none is written.`,
		Example: `  runtimeclass-router policy init policy/`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return initPolicy(cmd.OutOrStdout(), args[0])
		},
	}
}

func initPolicy(out io.Writer, directory string) error {
	root, err := fs.Sub(starter, "policy_starter")
	if err != nil {
		return err
	}
	var names []string
	var exist []error
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		names = append(names, name)
		if _, err := os.Lstat(filepath.Join(directory, name)); err == nil {
			exist = append(exist, fmt.Errorf("%s exists: name another directory, or remove it", filepath.Join(directory, name)))
		}
		return nil
	})
	if err := errors.Join(append(exist, err)...); err != nil {
		return err
	}
	for _, name := range names {
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		target := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Join(directory, filepath.FromSlash(path.Dir(name))), 0o755); err != nil {
			return err
		}
		if err := writeNew(target, content); err != nil {
			return err
		}
		fmt.Fprintln(out, target)
	}
	return nil
}

// writeNew writes a file that must not be there yet.
func writeNew(file string, content []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
