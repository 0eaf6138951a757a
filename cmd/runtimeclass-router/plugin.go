package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// The names by which kubectl starts a plugin and asks for its completions. kubectl takes
// a dash for the end of a command's name, so a name with a dash has an underscore here:
// https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/. Krew links plugins
// the same way. Both are links to one program.
const (
	pluginFile           = "kubectl-runtimeclass_router"
	pluginCompletionFile = "kubectl_complete-runtimeclass_router"
	pluginCommand        = "kubectl runtimeclass-router"
)

// invokedAs makes of the command what it was started as, argv being the program's name
// and its arguments.
func invokedAs(root *cobra.Command, argv []string) {
	args := argv[1:]
	switch strings.TrimSuffix(filepath.Base(argv[0]), ".exe") {
	case pluginCompletionFile:
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
		asPlugin(root)
	case pluginFile:
		asPlugin(root)
	}
	root.SetArgs(args)
}

// ownName is where an example calls the program.
var ownName = regexp.MustCompile(`(?m)(^ *|\| *)runtimeclass-router `)

// asPlugin has help and errors say what the user typed. A script for a shell would
// complete a program of another name, so there is none: kubectl has its own way.
func asPlugin(cmd *cobra.Command) {
	if !cmd.HasParent() {
		cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginCommand}
		cmd.CompletionOptions.DisableDefaultCmd = true
	}
	cmd.Example = ownName.ReplaceAllString(cmd.Example, "${1}"+pluginCommand+" ")
	for _, sub := range cmd.Commands() {
		asPlugin(sub)
	}
}
