package stack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// Router is a `runtimeclass-router serve` process.
type Router struct {
	// URL is where it serves, MetricsURL, StatusURL and HealthURL where it tells about
	// itself.
	URL, MetricsURL, StatusURL, HealthURL string
	// HTTP trusts the webhook's certificate, where the stack made it.
	HTTP *http.Client
	// Log is the file with what the process wrote.
	Log string

	binary, config, kubeconfig string
	process                    *exec.Cmd
	exited                     chan error
}

// NewRouter prepares another process like [Stack.Router] on other ports. The API
// server does not call it, and the caller starts and stops it. Its name is that of
// its log and of its files in the scratch folder.
func (s *Stack) NewRouter(ctx context.Context, name string) (*Router, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	return s.newRouter(ctx, name, ports)
}

// newRouter prepares the process: the chart's configuration, with the certificate
// and the addresses of this machine, and a kubeconfig of the chart's ServiceAccount.
func (s *Stack) newRouter(ctx context.Context, name string, ports []int) (*Router, error) {
	config, err := s.routerConfig(ctx, ports)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if s.certificate != nil && !pool.AppendCertsFromPEM(s.certificate) {
		return nil, errors.New("the webhook's certificate cannot be read")
	}
	r := &Router{
		URL:        fmt.Sprintf("https://127.0.0.1:%d", ports[0]),
		MetricsURL: fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[1]),
		StatusURL:  fmt.Sprintf("http://127.0.0.1:%d/statusz", ports[1]),
		HealthURL:  fmt.Sprintf("http://127.0.0.1:%d", ports[2]),
		HTTP:       &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}},
		Log:        filepath.Join(s.Dir, name+".log"),
		binary:     s.binary,
		config:     filepath.Join(s.Dir, name+".yaml"),
		kubeconfig: filepath.Join(s.Dir, name+".kubeconfig"),
	}
	if err := os.WriteFile(r.config, config, 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return r, s.writeServiceAccountKubeconfig(ctx, r.kubeconfig)
}

// routerConfig is the chart's configuration file, fit for a process outside of the
// cluster. The chart's policy is watched, as it is by its pods.
func (s *Stack) routerConfig(ctx context.Context, ports []int) ([]byte, error) {
	files, err := s.chartFiles(ctx, "config")
	if err != nil {
		return nil, err
	}
	raw, ok := files["config.yaml"]
	if !ok {
		return nil, fmt.Errorf("the chart made no ConfigMap with a config.yaml in namespace %s", Namespace)
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(raw), &config); err != nil {
		return nil, fmt.Errorf("the chart's config.yaml: %w", err)
	}
	webhookSection(config)["host"] = "127.0.0.1"
	webhookSection(config)["port"] = ports[0]
	config["metrics"] = map[string]any{"bindAddress": fmt.Sprintf("127.0.0.1:%d", ports[1])}
	config["health"] = map[string]any{"bindAddress": fmt.Sprintf("127.0.0.1:%d", ports[2])}
	if s.certificate != nil { // called by URL: no Service lies between
		webhookSection(config)["armAfter"] = "0s"
		config["certs"] = map[string]any{"mode": "directory", "directory": s.certDir()}
	}
	encoded, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	return encoded, nil
}

// webhookSection returns the section webhook of the configuration, or of the chart's values,
// made where it is missing.
func webhookSection(of map[string]any) map[string]any {
	if object, ok := of["webhook"].(map[string]any); ok {
		return object
	}
	object := map[string]any{}
	of["webhook"] = object
	return object
}

func (s *Stack) writeServiceAccountKubeconfig(ctx context.Context, path string) error {
	clients, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	token, err := clients.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, Release, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask for a token of service account %s: %w", Release, err)
	}
	kubeconfig := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: s.Config.Host, CertificateAuthorityData: s.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: Namespace}},
		CurrentContext: "x",
	}
	if err := clientcmd.WriteToFile(kubeconfig, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// Start runs the process and waits until it is ready.
func (r *Router) Start(ctx context.Context) error {
	log, err := os.OpenFile(r.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	r.process = exec.Command(r.binary, "serve", "--config", r.config)
	r.process.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig)
	r.process.Stdout, r.process.Stderr = log, log
	// A terminal's Ctrl-C goes to the whole group; this one is ended by Stop.
	r.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := errors.Join(r.process.Start(), log.Close()); err != nil {
		return fmt.Errorf("start %s: %w", r.binary, err)
	}
	exited := make(chan error, 1)
	r.exited = exited
	process := r.process
	release, err := tether(process.Process.Pid)
	if err != nil {
		return errors.Join(err, process.Process.Kill(), process.Wait())
	}
	go func() {
		err := process.Wait()
		release()
		exited <- err
	}()
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-exited:
			exited <- err
			return false, fmt.Errorf("the webhook ended: %w", err)
		default:
		}
		return r.healthy(ctx, "/readyz"), nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("wait for the webhook: %w; its log:\n%s", err, tail(r.Log)), r.Stop())
	}
	return nil
}

// Configure writes the process's configuration file anew, as edit leaves it. A running
// process notices by itself.
func (r *Router) Configure(edit func(config map[string]any)) error {
	raw, err := os.ReadFile(r.config)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	edit(config)
	if raw, err = yaml.Marshal(config); err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	return os.WriteFile(r.config, raw, 0o600)
}

// Command is the product's command line, with the rights of an administrator's
// kubeconfig where it asks a cluster.
func (s *Stack) Command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, s.binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.KubeconfigPath)
	return command
}

func (r *Router) healthy(ctx context.Context, path string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.HealthURL+path, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// ended reports whether the process has.
func (r *Router) ended() bool {
	select {
	case err := <-r.exited:
		r.exited <- err
		return true
	default:
		return false
	}
}

// Signal sends the process a signal.
func (r *Router) Signal(signal os.Signal) error { return r.process.Process.Signal(signal) }

// Wait returns what the process ended with.
func (r *Router) Wait() error {
	err := <-r.exited
	r.exited <- err
	return err
}

// Stop ends the process: it is asked to, and killed when it takes longer than its
// drain should.
func (r *Router) Stop() error {
	if r.process == nil || r.process.Process == nil {
		return nil
	}
	if err := r.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case err := <-r.exited:
		r.exited <- err
		return nil
	case <-time.After(15 * time.Second):
		return errors.Join(errors.New("the webhook did not end in 15 s"), r.Signal(syscall.SIGKILL))
	}
}

// Metrics returns what the process counts, in the text format.
func (r *Router) Metrics(ctx context.Context) (string, error) { return get(ctx, r.MetricsURL) }

// Status returns what the process tells of its policy, as JSON.
func (r *Router) Status(ctx context.Context) (string, error) { return get(ctx, r.StatusURL) }

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return string(raw), err
}

// waitLive creates, as a dry run, a pod that the webhook refuses until it does: the
// API server takes a moment to notice a new webhook configuration.
func (s *Stack) waitLive(ctx context.Context, log string) error {
	probe := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stack-probe", Labels: map[string]string{"runtimeclass-router.io/trust": "untrusted"}}}
	if err := s.CreateNamespace(ctx, probe); err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = clients.CoreV1().Pods(probe.Name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last != nil && Denied(last), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the API server calls the webhook: %w (last answer: %w); its log:\n%s", err, last, tail(log))
	}
	return s.Client.Delete(ctx, probe)
}

// buildRouter builds the product's binary where the Go toolchain would put it, so
// that a second run finds it built.
func buildRouter(ctx context.Context, root string, progress io.Writer) (string, error) {
	fmt.Fprintln(progress, "building runtimeclass-router")
	binary := filepath.Join(root, "bin", "runtimeclass-router")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/runtimeclass-router")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build runtimeclass-router: %w\n%s", err, out)
	}
	return binary, nil
}

func sourceRoot() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if _, err := os.Stat(filepath.Join(root, "go.mod")); !ok || err != nil {
		return "", fmt.Errorf("find the source of the product: %w", err)
	}
	return root, nil
}

func tail(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-4000):])
}
