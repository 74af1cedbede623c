package activities

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/process"
)

// notifyLimit bounds one try to deliver a notice, by command or webhook.
const notifyLimit = 30 * time.Second

// Headers of a webhook.
const (
	headerEvent     = "Mendflow-Event"
	headerDelivery  = "Mendflow-Delivery"
	headerSignature = "Mendflow-Signature" // sha256=<hex HMAC-SHA256 of the body>
)

// Notify delivers a notice to one receiver, once. Trying it again is the workflow's to decide.
func (a *Publication) Notify(ctx context.Context, in contract.NotificationInput) error {
	heart := startHeart(ctx, a.Host.ID, "notify")
	defer heart.end()
	return translate(ctx, a.notify(ctx, in))
}

func (a *Publication) notify(ctx context.Context, in contract.NotificationInput) error {
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return err
	}
	receivers := opened.config.Plan.Notify
	if in.Receiver < 0 || in.Receiver >= len(receivers) {
		return fmt.Errorf("notify: the plan has no receiver %d: %w", in.Receiver, errInvalidPlan)
	}
	body, err := json.Marshal(in.Notice)
	if err != nil {
		return fmt.Errorf("write notice: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, notifyLimit)
	defer cancel()
	receiver := receivers[in.Receiver]
	if receiver.Command != nil {
		return a.notifyCommand(ctx, opened, in, *receiver.Command, body)
	}
	return a.notifyWebhook(ctx, in, receiver, body)
}

// notifyWebhook posts the notice, signed where the plan names a secret.
func (a *Publication) notifyWebhook(ctx context.Context, in contract.NotificationInput, receiver plan.Notification, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, receiver.Webhook, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call webhook: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "mendflow")
	request.Header.Set(headerEvent, string(in.Notice.Event))
	request.Header.Set(headerDelivery, in.Notice.ID)
	if receiver.SecretEnv != "" {
		secret := a.Host.token([]string{receiver.SecretEnv})
		if secret == "" {
			return fmt.Errorf("sign notice: %s is not set in the environment of the worker", receiver.SecretEnv)
		}
		request.Header.Set(headerSignature, sign(secret, body))
	}
	client := &http.Client{Timeout: notifyLimit}
	if a.HTTP != nil {
		copied := *a.HTTP
		client = &copied
	}
	// A redirect would post to whom the plan does not name, or not post at all.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	var called *url.Error
	if errors.As(err, &called) { // its text has the address, which often holds a secret
		err = called.Err
	}
	if err != nil {
		return fmt.Errorf("call webhook: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	const answer = 1 << 10
	text, _ := io.ReadAll(io.LimitReader(response.Body, answer))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("call webhook: it answers %s: %s", response.Status, text)
	}
	return nil
}

// sign is the value of the signature header.
func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// notifyCommand runs the hook with the notice on its standard input, like every
// program of a plan: confined, with the plan's environment, in a folder that goes away.
func (a *Publication) notifyCommand(ctx context.Context, opened *openRun, in contract.NotificationInput, command plan.Command, body []byte) error {
	tmp, err := os.MkdirTemp(filepath.Join(a.Host.StateDir, "tmp"), "notify-")
	if err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	env, err := a.Host.environment(opened.config.Plan.Env, tmp, true, map[string]string{
		"MENDFLOW_EVENT": string(in.Notice.Event), "MENDFLOW_RUN": in.Notice.Run, "MENDFLOW_STATUS": string(in.Notice.Status),
	})
	if err != nil {
		return err
	}
	result, err := process.Run(ctx, process.Spec{
		Argv: command.Argv, Shell: command.Shell, Dir: tmp, Env: env, Stdin: body,
		Sandbox: a.Host.sandbox(true, tmp, tmp), Absolute: notifyLimit, Secrets: opened.masker,
		Mark: fmt.Sprintf("%s/%s/notify/%s", a.Host.Mark(), in.Notice.Run, filepath.Base(in.Notice.ID)),
	})
	if err != nil {
		return fmt.Errorf("run `%s`: %w", command, err)
	}
	if !result.Succeeded() {
		return fmt.Errorf("run `%s`: %s: %s", command, result, clipHead(result.StdoutTail+result.StderrTail, 300))
	}
	return nil
}
