// Command admin is the Lambda function of the operator: migrations and the
// commands of package operator. It has no event source; who may invoke it is
// up to IAM.
package main

import "pawgate/internal/operator"

func main() { operator.Lambda() }
