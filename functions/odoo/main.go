// Command odoo is the Lambda function of the category odoo.
package main

import (
	"pawgate/internal/category/odoo"
	"pawgate/internal/serve"
)

func main() { serve.Lambda(odoo.Open) }
