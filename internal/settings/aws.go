package settings

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// awsSecrets asks Secrets Manager and Systems Manager for values. It uses the
// SDK's signer alone: the two service clients with the configuration chain
// would cost every cold start several milliseconds, and inside Lambda the
// credentials are in the environment anyway.
type awsSecrets struct{ getenv func(string) string }

// secretTimeout bounds one value at start.
const secretTimeout = 5 * time.Second

// secretsManager reads a secret, or one member of a secret that is a JSON
// object (Secrets Manager API, GetSecretValue).
func (a awsSecrets) secretsManager(ctx context.Context, id, key string) (string, error) {
	var out struct{ SecretString string }
	if err := a.call(ctx, "secretsmanager", "secretsmanager.GetSecretValue", map[string]any{"SecretId": id}, &out); err != nil {
		return "", err
	}
	if key == "" {
		return out.SecretString, nil
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(out.SecretString), &members); err != nil {
		return "", fmt.Errorf("secret %s is not a JSON object, so it has no member %s", id, key)
	}
	value, ok := members[key]
	if !ok {
		return "", fmt.Errorf("secret %s has no member %s", id, key)
	}
	return fmt.Sprint(value), nil
}

// parameter reads a parameter, decrypted (Systems Manager API, GetParameter).
func (a awsSecrets) parameter(ctx context.Context, name string) (string, error) {
	var out struct{ Parameter struct{ Value string } }
	err := a.call(ctx, "ssm", "AmazonSSM.GetParameter", map[string]any{"Name": name, "WithDecryption": true}, &out)
	return out.Parameter.Value, err
}

// call makes one signed request of the AWS JSON 1.1 protocol.
func (a awsSecrets) call(ctx context.Context, service, target string, in, out any) error {
	region := cmp.Or(a.getenv("AWS_REGION"), a.getenv("AWS_DEFAULT_REGION"))
	creds := aws.Credentials{AccessKeyID: a.getenv("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: a.getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: a.getenv("AWS_SESSION_TOKEN")}
	if region == "" || creds.AccessKeyID == "" {
		return errors.New("AWS_REGION and AWS credentials are not in the environment")
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	endpoint := cmp.Or(a.getenv("AWS_ENDPOINT_URL_"+endpointNames[service]), a.getenv("AWS_ENDPOINT_URL"),
		fmt.Sprintf("https://%s.%s.amazonaws.com", service, region))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return errors.New("the AWS endpoint is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", target)
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, creds, req, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	return do(req, service, out)
}

var endpointNames = map[string]string{"secretsmanager": "SECRETS_MANAGER", "ssm": "SSM"}

func do(req *http.Request, service string, out any) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s is not reachable", service)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", service, err)
	}
	if resp.StatusCode != http.StatusOK {
		var failure struct {
			Type string `json:"__type"`
		}
		_ = json.Unmarshal(body, &failure) // the class says enough; the message may name accounts
		return fmt.Errorf("%s answered %d %s", service, resp.StatusCode, failure.Type[strings.LastIndexByte(failure.Type, '#')+1:])
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the answer of %s could not be read", service)
	}
	return nil
}
