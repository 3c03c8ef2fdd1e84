// Command web is the Lambda function of the category web.
package main

import (
	"pawgate/internal/category/web"
	"pawgate/internal/serve"
)

func main() { serve.Lambda(web.Open) }
