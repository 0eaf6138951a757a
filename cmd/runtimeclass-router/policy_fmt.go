package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

type policyFmtOptions struct {
	diff, write, list bool
}

func newPolicyFmtCommand() *cobra.Command {
	o := &policyFmtOptions{}
	cmd := &cobra.Command{
		Use:   "fmt PATH...",
		Short: "Format Rego files as opa fmt does",
		Long: `Format .rego files, and every .rego file below directories, as Rego v1. Without a flag
the formatted text is printed.

Exit status, as gofmt's: 0, also if --list or --diff find files that are not formatted;
1 if a file cannot be read, parsed or written. A pipeline asks whether --list prints
anything.`,
		Example: `  runtimeclass-router policy fmt --list policy/
  runtimeclass-router policy fmt --write policy/`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var errs []error
			for _, path := range args {
				errs = append(errs, o.run(cmd.OutOrStdout(), path))
			}
			problems := policies.Problems(errors.Join(errs...))
			if len(problems) == 0 {
				return nil
			}
			return writeProblems(cmd.ErrOrStderr(), problems)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.diff, "diff", "d", false, "print what would change")
	flags.BoolVarP(&o.write, "write", "w", false, "write the files")
	flags.BoolVarP(&o.list, "list", "l", false, "print the names of files that are not formatted")
	return cmd
}

func (o *policyFmtOptions) run(out io.Writer, path string) error {
	var errs []error
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		if !entry.IsDir() && (filepath.Ext(file) == ".rego" || file == path) {
			errs = append(errs, o.file(out, file))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

func (o *policyFmtOptions) file(out io.Writer, file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	formatted, err := format.SourceWithOpts(file, source, format.Opts{RegoVersion: ast.RegoV1})
	if err != nil {
		return err
	}
	if !o.diff && !o.write && !o.list {
		_, err := out.Write(formatted)
		return err
	}
	if bytes.Equal(source, formatted) {
		return nil
	}
	if o.list {
		fmt.Fprintln(out, file)
	}
	if o.diff {
		if err := difflib.WriteUnifiedDiff(out, difflib.UnifiedDiff{
			A: slices.Collect(strings.Lines(string(source))), B: slices.Collect(strings.Lines(string(formatted))),
			FromFile: file + ".orig", ToFile: file, Context: 3,
		}); err != nil {
			return err
		}
	}
	if !o.write {
		return nil
	}
	return replaceFile(file, formatted)
}

// replaceFile writes beside the file and renames, so that none is half-written, and
// keeps its permissions. The target of a link is replaced, not the link.
func replaceFile(file string, content []byte) error {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".fmt-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // gone, if it was renamed
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Chmod(info.Mode().Perm()), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}
