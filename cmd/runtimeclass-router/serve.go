package main

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	kubeconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func newServeCommand() *cobra.Command {
	var file string
	flags := &struct {
		port, level             int
		certDir, format, policy string
	}{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the admission webhook",
		Long: `Run the admission webhook. It is configured by a file (--config); config.yaml beside
the command's source documents every field. A flag that is given wins over the file.
The cluster is reached as kubectl would reach it, and from inside a pod by its
service account.`,
		Example: `  runtimeclass-router serve --config /etc/runtimeclass-router/config.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			load := func() (*config, error) {
				c, err := loadConfig(file)
				if err != nil {
					return nil, err
				}
				for name, set := range map[string]func(){
					"port":       func() { c.Webhook.Port = flags.port },
					"cert-dir":   func() { c.Certs.Directory = flags.certDir },
					"log-level":  func() { c.Log.Level = flags.level },
					"log-format": func() { c.Log.Format = flags.format },
					"policy-dir": func() { c.Policies.Directory = flags.policy },
				} {
					if cmd.Flags().Changed(name) {
						set()
					}
				}
				return c, nil
			}
			c, err := load()
			if err != nil {
				return err
			}
			if err := c.validate(); err != nil {
				return fmt.Errorf("configuration: %w", err)
			}
			log := newLogger(c.Log, cmd.ErrOrStderr())
			ctrl.SetLogger(log)
			klog.SetLogger(log)
			limitMemory(log)
			kube, err := kubeconfig.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster: %w", err)
			}
			return serve(cmd.Context(), load, kube, log, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the configuration file")
	cmd.Flags().IntVar(&flags.port, "port", 0, "webhook.port")
	cmd.Flags().StringVar(&flags.certDir, "cert-dir", "", "certs.directory")
	cmd.Flags().IntVar(&flags.level, "log-level", 0, "log.level")
	cmd.Flags().StringVar(&flags.format, "log-format", "", "log.format")
	cmd.Flags().StringVar(&flags.policy, "policy-dir", "", "policies.directory")
	return cmd
}

func newLogger(c logConfig, out io.Writer) logr.Logger {
	options := []zap.Opts{zap.WriteTo(out), zap.Level(uberzap.NewAtomicLevelAt(zapcore.Level(-c.Level)))}
	if c.Format == "text" {
		options = append(options, zap.ConsoleEncoder())
	} else {
		options = append(options, zap.JSONEncoder())
	}
	return zap.New(options...)
}
