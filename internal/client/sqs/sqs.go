// Package sqs sends to one queue of Amazon SQS, and does nothing else with it:
// receiving is Lambda's event source.
//
// It uses the SDK's signer alone, because the service client with its chain of
// configuration would cost every cold start several milliseconds, and inside
// Lambda the credentials are in the environment anyway.
package sqs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Config says which queue, and who sends. Lambda sets all but the first.
type Config struct {
	QueueURL     string `envconfig:"PAWGATE_WORK_QUEUE_URL" desc:"SQS queue that feeds agent-worker; unset: workers look into the database"`
	Region       string `envconfig:"AWS_REGION" desc:"set by Lambda"`
	AccessKeyID  string `envconfig:"AWS_ACCESS_KEY_ID" desc:"set by Lambda"`
	SecretKey    string `envconfig:"AWS_SECRET_ACCESS_KEY" desc:"set by Lambda"`
	SessionToken string `envconfig:"AWS_SESSION_TOKEN" desc:"set by Lambda"`
	Endpoint     string `envconfig:"AWS_ENDPOINT_URL_SQS" desc:"where SQS is, when not at the region's own address"`
}

// Queue is one queue.
type Queue struct {
	cfg  Config
	http *http.Client
}

// timeout bounds one request, also for a caller without a deadline.
const timeout = 5 * time.Second

// New is a queue, and false when none is configured.
func New(cfg Config) (Queue, bool) {
	client := &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a signed request is for one place
	}
	return Queue{cfg, client}, cfg.QueueURL != ""
}

// MaxBatch is the most messages of one request (SQS API, SendMessageBatch).
const MaxBatch = 10

type entry struct {
	ID   string `json:"Id"`
	Body string `json:"MessageBody"`
}

// Send sends each text as a message, at most MaxBatch of them, and gives those
// that SQS did not accept (SQS API, SendMessageBatch, AWS JSON 1.0). An error,
// after five seconds at the latest, means that nobody knows which were.
func (q Queue) Send(ctx context.Context, texts []string) (refused []string, err error) {
	if len(texts) > MaxBatch {
		return nil, fmt.Errorf("send to SQS: %d messages at once, more than %d", len(texts), MaxBatch)
	}
	entries := make([]entry, len(texts))
	for i, text := range texts {
		entries[i] = entry{strconv.Itoa(i), text}
	}
	body, err := json.Marshal(map[string]any{"QueueUrl": q.cfg.QueueURL, "Entries": entries})
	if err != nil {
		return nil, fmt.Errorf("encode messages: %w", err)
	}
	var out struct {
		Failed []struct {
			ID string `json:"Id"`
		}
	}
	if err := q.call(ctx, "SendMessageBatch", body, &out); err != nil {
		return nil, err
	}
	for _, failed := range out.Failed {
		if i, err := strconv.Atoi(failed.ID); err == nil && i >= 0 && i < len(texts) {
			refused = append(refused, texts[i])
		}
	}
	return refused, nil
}

// call makes one signed request of the AWS JSON 1.0 protocol.
func (q Queue) call(ctx context.Context, action string, body []byte, out any) error {
	endpoint := q.cfg.Endpoint
	if endpoint == "" {
		endpoint = "https://sqs." + q.cfg.Region + "." + suffix(q.cfg.Region)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(endpoint, "/")+"/", bytes.NewReader(body))
	if err != nil {
		return errors.New("the SQS endpoint is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	sum := sha256.Sum256(body)
	creds := aws.Credentials{AccessKeyID: q.cfg.AccessKeyID, SecretAccessKey: q.cfg.SecretKey, SessionToken: q.cfg.SessionToken}
	if err := v4.NewSigner().SignHTTP(ctx, creds, req, hex.EncodeToString(sum[:]), "sqs", q.cfg.Region, time.Now()); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	resp, err := q.http.Do(req)
	if err != nil {
		return errors.New("SQS is not reachable") // the cause names the endpoint
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read answer of SQS: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var failure struct {
			Type string `json:"__type"`
		}
		_ = json.Unmarshal(answer, &failure) // the class says enough; the message may name accounts
		return fmt.Errorf("SQS answered %d %s", resp.StatusCode, failure.Type[strings.LastIndexByte(failure.Type, '#')+1:])
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return errors.New("the answer of SQS could not be read")
	}
	return nil
}

// suffix is the domain of a region's partition.
func suffix(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}
