// Command send is the Lambda function of the category send.
package main

import (
	"pawgate/internal/category/send"
	"pawgate/internal/serve"
)

func main() { serve.Lambda(send.Open) }
