//go:build e2e && sam

package e2e

import (
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

// cfnTemplate is what of a CloudFormation template the tests look at.
type cfnTemplate struct {
	Parameters map[string]struct{ Description string }
	Resources  map[string]cfnResource
}

type cfnResource struct {
	Type       string
	Condition  string
	Properties json.RawMessage
}

// ref is {"Ref": name}, or a plain string.
type ref string

func (r *ref) UnmarshalJSON(b []byte) error {
	var in struct{ Ref string }
	if err := json.Unmarshal(b, &in); err == nil {
		*r = ref(in.Ref)
		return nil
	}
	return json.Unmarshal(b, (*string)(r))
}

// ofType decodes the properties of all resources of a type, by name.
func ofType[P any](t *testing.T, tpl cfnTemplate, kind string) map[string]P {
	t.Helper()
	found := map[string]P{}
	for name, r := range tpl.Resources {
		if r.Type != kind {
			continue
		}
		var p P
		if err := json.Unmarshal(r.Properties, &p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found[name] = p
	}
	if len(found) == 0 {
		t.Fatalf("the template has no %s", kind)
	}
	return found
}

// lambdaFunction is a function of the template.
type lambdaFunction struct {
	Runtime, Handler string
	Timeout          any
	TracingConfig    struct{ Mode string }
	LoggingConfig    struct{ LogGroup ref }
	Environment      struct{ Variables map[string]any }
}

// TestTemplateValid: the linters find nothing, for the laptop and both
// deployments, and no parameter is left undescribed.
func TestTemplateValid(t *testing.T) {
	s := newSAM(t)
	for _, env := range []string{"default", "staging", "prod"} {
		s.run(t, "validate", "--lint", "--config-env", env)
	}
	runMust(t, s.env, filepath.Join(filepath.Dir(s.bin), "cfn-lint"), filepath.Join(repoRoot(t), "template.yaml"))
	for name, p := range s.transformed(t).Parameters {
		if p.Description == "" {
			t.Errorf("parameter %s has no description", name)
		}
	}
}

// TestTemplateDoors: who may call what. A category has no door but the
// router's role; the operator's function has none but the operator's rights, and
// this stack's own schedule for upkeep; tick has a schedule, and the worker the
// stack's queue and a schedule for approval cards.
func TestTemplateDoors(t *testing.T) {
	tpl := newSAM(t).transformed(t)
	type permission struct {
		Action, Principal, FunctionUrlAuthType string
		InvokedViaFunctionUrl                  bool
		FunctionName                           ref
		SourceArn                              any
	}
	clocks := []string{"AdminFunctionMaintainPermission", "TickFunctionEveryMinutePermission", "AgentWorkerFunctionCardsPermission"}
	urlActions := []string{}
	for name, p := range ofType[permission](t, tpl, "AWS::Lambda::Permission") {
		switch {
		case p.FunctionName == "RouterFunctionAliaslive" && p.Principal == "apigateway.amazonaws.com" && p.SourceArn != nil:
		case p.FunctionName == "RouterStreamFunctionAliaslive" && p.Principal == "*" && (p.FunctionUrlAuthType == "NONE" || p.InvokedViaFunctionUrl):
			urlActions = append(urlActions, p.Action)
		case slices.Contains(clocks, name) && p.Principal == "events.amazonaws.com" && p.SourceArn != nil:
		default:
			t.Errorf("%s lets %s call %s", name, p.Principal, p.FunctionName)
		}
	}
	slices.Sort(urlActions)
	if diff := cmp.Diff([]string{"lambda:InvokeFunction", "lambda:InvokeFunctionUrl"}, urlActions); diff != "" {
		t.Errorf("permissions of the Function URL (-want +got):\n%s", diff)
	}
	for name, r := range tpl.Resources {
		if r.Type == "AWS::Lambda::EventSourceMapping" && name != "AgentWorkerFunctionWork" || r.Type == "AWS::Lambda::Url" && !strings.HasPrefix(name, "RouterStream") {
			t.Errorf("%s is a door of its own: %s", name, r.Type)
		}
	}
	want := []string{}
	for _, name := range functionNames(t) {
		if !slices.Contains([]string{"router", "admin", "tick", "agent-worker"}, name) {
			want = append(want, logicalID(name)+"Aliaslive")
		}
	}
	if diff := cmp.Diff(want, invocable(t, tpl)); diff != "" {
		t.Errorf("functions that the router may invoke (-want +got):\n%s", diff)
	}
}

// logicalID is a function's name in the template: agent-worker is
// AgentWorkerFunction.
func logicalID(folder string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(folder, "-") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String() + "Function"
}

// invocable are the functions that any policy of the template lets a role
// invoke; it fails if a policy but the router's does.
func invocable(t *testing.T, tpl cfnTemplate) []string {
	t.Helper()
	type policy struct {
		PolicyDocument struct{ Statement []json.RawMessage }
	}
	names := []string{}
	for name, p := range ofType[policy](t, tpl, "AWS::IAM::ManagedPolicy") {
		for _, raw := range p.PolicyDocument.Statement {
			var statement struct {
				Action   any
				Resource []ref
			}
			if strings.Contains(string(raw), `"Action": "*"`) || strings.Contains(string(raw), `"Resource": "*"`) {
				t.Errorf("%s allows anything: %s", name, raw)
			}
			if !strings.Contains(string(raw), "lambda:") {
				continue
			}
			if err := json.Unmarshal(raw, &statement); err != nil || name != "RouterPolicy" {
				t.Fatalf("%s may call functions: %s (%v)", name, raw, err)
			}
			for _, r := range statement.Resource {
				names = append(names, string(r))
			}
		}
	}
	slices.Sort(names)
	return names
}

// TestTemplateFunctions: what every function needs to run well.
func TestTemplateFunctions(t *testing.T) {
	tpl := newSAM(t).transformed(t)
	type invokeConfig struct{ MaximumRetryAttempts *int }
	type alarm struct {
		MetricName string
		Dimensions []struct {
			Name  string
			Value ref
		}
	}
	type logGroup struct{ RetentionInDays any }
	alarms := map[string][]string{}
	for _, a := range ofType[alarm](t, tpl, "AWS::CloudWatch::Alarm") {
		alarms[string(a.Dimensions[0].Value)] = append(alarms[string(a.Dimensions[0].Value)], a.MetricName)
	}
	groups := ofType[logGroup](t, tpl, "AWS::Logs::LogGroup")
	retries := ofType[invokeConfig](t, tpl, "AWS::Lambda::EventInvokeConfig")
	functions := ofType[lambdaFunction](t, tpl, "AWS::Lambda::Function")
	for name, f := range functions {
		if f.Runtime != "provided.al2023" || f.Handler != "bootstrap" || f.TracingConfig.Mode != "Active" {
			t.Errorf("%s: runtime %s, handler %s, tracing %s", name, f.Runtime, f.Handler, f.TracingConfig.Mode)
		}
		if groups[string(f.LoggingConfig.LogGroup)].RetentionInDays == nil {
			t.Errorf("%s logs to %q, which has no retention", name, f.LoggingConfig.LogGroup)
		}
		if r := retries[name+"EventInvokeConfig"].MaximumRetryAttempts; r == nil || *r != 0 {
			t.Errorf("%s: the platform would repeat a failed event", name)
		}
		for _, metric := range []string{"Errors", "Throttles", "Duration"} {
			operator := name == "AdminFunction" && metric != "Errors" // one call at a time, and migrations are long
			stream := name == "RouterStreamFunction" && metric == "Duration"
			worker := name == "AgentWorkerFunction" && metric == "Duration"
			if !operator && !stream && !worker && !slices.Contains(alarms[name], metric) {
				t.Errorf("%s has no alarm for %s", name, metric)
			}
		}
	}
	for _, folder := range functionNames(t) {
		if _, ok := functions[logicalID(folder)]; !ok {
			t.Errorf("functions/%s is not in the template as %s", folder, logicalID(folder))
		}
	}
}

// TestTemplateKeys: only the router's function and the worker, which is a router
// without a public door, sign, every category checks,
// and no function is told that it runs under SAM local.
func TestTemplateKeys(t *testing.T) {
	for name, f := range ofType[lambdaFunction](t, newSAM(t).transformed(t), "AWS::Lambda::Function") {
		vars := f.Environment.Variables
		if _, signs := vars["PAWGATE_ASSERTION_KEY"]; signs != (strings.HasPrefix(name, "Router") || name == "AgentWorkerFunction") {
			t.Errorf("%s has the signing key: %v", name, signs)
		}
		if _, checks := vars["PAWGATE_ASSERTION_PUBLIC_KEY"]; !checks {
			t.Errorf("%s has no key to check calls with", name)
		}
		if _, local := vars["AWS_SAM_LOCAL"]; local {
			t.Errorf("%s would take unsigned calls", name)
		}
	}
	// A category may read the whole secret that holds its key.
	content, err := os.ReadFile(filepath.Join(repoRoot(t), "samconfig.toml"))
	if err != nil {
		t.Fatal(err)
	}
	type section struct {
		Global struct {
			Parameters struct {
				Overrides []string `toml:"parameter_overrides"`
			} `toml:"parameters"`
		} `toml:"global"`
	}
	var config struct{ Staging, Prod section }
	if err := toml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]section{"staging": config.Staging, "prod": config.Prod} {
		values := map[string]string{}
		for _, override := range s.Global.Parameters.Overrides {
			key, value, _ := strings.Cut(override, "=")
			values[key], _, _ = strings.Cut(value, "#")
		}
		if values["AssertionKey"] == "" || values["AssertionKey"] == values["AssertionPublicKey"] || values["AssertionKey"] == values["DatabaseUrl"] {
			t.Errorf("%s: AssertionKey %q lies where categories may read", name, values["AssertionKey"])
		}
	}
}

// TestTemplateBuilds: sam build makes a stripped, static program of every
// function, for the architecture that the template is given.
func TestTemplateBuilds(t *testing.T) {
	s := newSAM(t)
	machines := map[string]elf.Machine{"arm64": elf.EM_AARCH64, "x86_64": elf.EM_X86_64}
	for arch, machine := range machines {
		dir := t.TempDir()
		s.run(t, "build", "--build-dir", dir, "--parameter-overrides", "Architecture="+arch)
		for _, name := range append(functionNames(t), "router-stream") {
			f, err := elf.Open(filepath.Join(dir, logicalID(name), "bootstrap"))
			if err != nil {
				t.Error(err)
				continue
			}
			if f.Machine != machine || f.Section(".interp") != nil || f.Section(".symtab") != nil {
				t.Errorf("%s for %s: machine %s, interpreter %v, symbols %v", name, arch, f.Machine, f.Section(".interp"), f.Section(".symtab"))
			}
			f.Close()
		}
	}
}
