// Command control is the Lambda function of the category control.
package main

import (
	"pawgate/internal/category/control"
	"pawgate/internal/serve"
)

func main() { serve.Lambda(control.Open) }
