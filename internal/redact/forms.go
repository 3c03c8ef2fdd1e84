package redact

// forms are the kinds of secrets that are known, the most common first. The
// examples are made up and stand in pieces, or a scanner would take this file
// for a leak. Where a form was taken from its vendor's documentation, the words
// "documented" say so; the others were seen in published code.
func forms() []form {
	all := append(append(append(ownForms(), cloudForms()...), chatForms()...), namedForms()...)
	for i := range all {
		all[i].prepare()
	}
	return all
}

// ownForms are pawgate's keys and those of its predecessor.
func ownForms() []form {
	return []form{
		{name: "pawgate_key", hints: []string{"paw_"}, pattern: `paw_[a-z0-9]{1,20}_[A-Za-z0-9_-]{20,}`, example: "paw_" + "prod_8sPq0dXyZ1aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456"},
		{name: "duduclaw_key", hints: []string{"ddc_"}, pattern: `ddc_(?:refresh_|oauth_r_|oauth_)?(?:[a-z]+_)?[0-9a-f]{32,}`, example: "ddc_" + "prod_0123456789abcdef0123456789abcdef"},
	}
}

// cloudForms are of model providers, code hosts, clouds and payment.
func cloudForms() []form {
	return []form{
		{name: "model_key", hints: []string{"sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"}, pattern: `sk-[a-z0-9]+-[A-Za-z0-9_-]{20,}`, example: "sk-ant-" + "api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0"},
		{name: "model_key", hints: []string{"sk-"}, pattern: `sk-[A-Za-z0-9]{32,}`, exact: true, example: "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"},
		{name: "model_key", hints: []string{"gsk_", "xai-", "pplx-"}, pattern: `(?:gsk_|xai-|pplx-)[A-Za-z0-9]{40,}`, example: "gsk_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1Cd2Ef3"},
		{name: "huggingface", hints: []string{"hf_"}, pattern: `hf_[A-Za-z0-9]{30,}`, exact: true, example: "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"},
		{name: "tavily", hints: []string{"tvly-"}, pattern: `tvly-[A-Za-z0-9-]{20,}`, example: "tvly-" + "dev-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"},
		{name: "github", hints: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, pattern: `gh[pousr]_[A-Za-z0-9_]{36,}`, example: "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"},
		{name: "github", hints: []string{"github_pat_"}, pattern: `github_pat_[A-Za-z0-9_]{22,}`, example: "github_pat_" + "11ABCDEFG0abcdefghijkl_0123456789"},
		{name: "gitlab", hints: []string{"glpat-"}, pattern: `glpat-[A-Za-z0-9_.-]{20,}`, example: "glpat-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn"},
		{name: "npm", hints: []string{"npm_"}, pattern: `npm_[A-Za-z0-9]{36}`, exact: true, example: "npm_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"},
		{name: "pypi", hints: []string{"pypi-AgEI"}, pattern: `pypi-AgEI[A-Za-z0-9_-]{50,}`, example: "pypi-" + "AgEIcHlwaS5vcmcCJGFiMWNkMmVmM2doNGlqNWtsNm1uN29wOHFyOXN0MHV2MXd4"},
		{name: "aws", hints: []string{"AKIA", "ASIA"}, pattern: `(?:AKIA|ASIA)[A-Z0-9]{16}(?:[\s,;:|/]{1,3}[A-Za-z0-9/+]{40})?`, exact: true, example: "AKIA" + "IOSFODNN7EXAMPLE," + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
		{name: "google", hints: []string{"AIza"}, pattern: `AIza[A-Za-z0-9_-]{35}`, exact: true, example: "AIza" + "SyAb1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1"},
		{name: "google", hints: []string{"ya29."}, pattern: `ya29\.[A-Za-z0-9_-]{20,}`, example: "ya29." + "a0Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"},
		{name: "google", hints: []string{"GOCSPX-"}, pattern: `GOCSPX-[A-Za-z0-9_-]{28}`, example: "GOCSPX-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9S"},
		{name: "google", hints: []string{"1//0"}, pattern: `1//0[A-Za-z0-9_-]{40,}`, example: "1//0" + "gAb1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1"},
		{name: "azure", hints: []string{"AccountKey=", "SharedAccessKey="}, pattern: `[A-Za-z]+=([A-Za-z0-9+/]{40,88}={0,2})`, example: "AccountKey=" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1Cd2E=="},
		{name: "digitalocean", hints: []string{"dop_v1_", "doo_v1_"}, pattern: `do[op]_v1_[a-f0-9]{64}`, example: "dop_v1_" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		{name: "vault", hints: []string{"hvs."}, pattern: `hvs\.[A-Za-z0-9_-]{24,}`, example: "hvs." + "CAESIAb1Cd2Ef3Gh4Ij5Kl6Mn7"},
		{name: "age_key", hints: []string{"AGE-SECRET-KEY-1"}, pattern: `AGE-SECRET-KEY-1[A-Z0-9]{58}`, example: "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"},
		{name: "stripe", hints: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_"}, pattern: `[sr]k_(?:live|test)_[A-Za-z0-9]{16,}`, example: "sk_live_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"},
		{name: "stripe", hints: []string{"whsec_"}, pattern: `whsec_[A-Za-z0-9+/]{24,}={0,2}`, example: "whsec_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"},
		{name: "sendgrid", hints: []string{"SG."}, pattern: `SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`, example: "SG." + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7O." + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1C"},
		{name: "notion", hints: []string{"ntn_", "secret_"}, pattern: `(?:ntn_|secret_)[A-Za-z0-9]{43,}`, exact: true, example: "ntn_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1Cd2"},
		{name: "linear", hints: []string{"lin_api_"}, pattern: `lin_api_[A-Za-z0-9]{32,}`, example: "lin_api_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"},
	}
}

// chatForms are of chat platforms, most of which put the token into the URL.
func chatForms() []form {
	return []form{
		{name: "slack", hints: []string{"xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-"}, pattern: `xox[a-z][-.][A-Za-z0-9.%-]{16,}`, example: "xoxb-" + "1234567890-1234567890123-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"},
		{name: "slack", hints: []string{"xapp-"}, pattern: `xapp-[0-9]-[A-Za-z0-9-]{16,}`, example: "xapp-" + "1-A0123456789-1234567890123-abcdef0123456789"},
		{name: "slack_webhook", hints: []string{"hooks.slack.com/"}, pattern: `hooks\.slack\.com/[a-z]{1,20}/([A-Za-z0-9/_-]{20,})`, example: "https://hooks.slack.com/services/" + "T00000000/B00000000/Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"},
		{name: "discord_webhook", hints: []string{"/api/webhooks/"}, pattern: `/api/webhooks/[0-9]{15,21}/([A-Za-z0-9_-]{40,})`, example: "https://discord.com/api/webhooks/" + "123456789012345678/Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0"},
		{name: "telegram", hints: []string{":A", "%3AA"}, find: findTelegram, example: "https://api.telegram.org/bot" + "123456789:" + "AAF1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q" + "/sendMessage"},
		{name: "discord", find: findDiscord, example: "MTIzNDU2Nzg5MDEyMzQ1Njc4" + ".Gh4Ij5." + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz"}, // by its dots, see dotsApart
		{name: "line", hints: []string{"dB04t89/1O/w1cDnyilFU=", `dB04t89\/1O\/w1cDnyilFU=`}, find: findLine, example: "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qrg" + "dB04t89/1O/w1cDnyilFU="},
	}
}

// namedForms are known by what stands around them.
func namedForms() []form {
	return []form{
		{name: "jwt", hints: []string{".eyJ"}, find: findJWT, example: "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0." + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab1C"},
		{name: "jwe", hints: []string{"eyJhbGciOi", "eyJlbmMiOi"}, find: findJWE, example: "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0" + ".." + "Ab1Cd2Ef3Gh4Ij5K.Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8.Ab1Cd2Ef3Gh4Ij5Kl6Mn7O"},
		{name: "private_key", hints: []string{"PRIVATE KEY"}, find: findPEM, example: "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0123456789abcdef\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n"},
		{name: "authorization", hints: []string{"authorization"}, find: findAuthorization, example: "Authorization: " + "Digest username=\"u\", response=\"0123\""},
		{name: "bearer", hints: []string{"bearer "}, find: findBearer, example: "curl -H 'X-Auth: Bearer " + "0123456789abcdef0123'"},
		{name: "basic", hints: []string{"basic "}, find: findBasic, example: "sent Basic " + "YWxpY2U6aHVudGVyMg=="},
		{name: "cookie", hints: []string{"cookie"}, find: findCookie, example: "Cookie: " + "session=Ab1Cd2Ef3; theme=dark"},
		{name: "url_password", hints: []string{"://", `:\/\/`}, find: findURL, example: "postgres://app:" + "s3cr3t@db.internal:5432/app"},
		{name: "password", hints: []string{"password", "passwd", "pwd", "passphrase", "密碼", "密码", "パスワード"}, find: family{shortest: 1, number: true,
			harmless: []string{"show", "hide", "has", "no", "is", "require", "requires", "forgot", "reset", "change", "invalid", "wrong", "min", "max"}}.find,
			example: "host=db password=" + "hunter2 dbname=app"},
		{name: "secret", hints: []string{"secret", "secret_key", "secret-key", "secretkey", "secret_access_key", "secretaccesskey", "private_key", "privatekey", "signing_key", "encryption_key", "session_key"},
			find: family{shortest: 6, number: true, harmless: []string{"has", "no", "is", "show", "use"}}.find, example: `{"client_secret":"` + `top-hat-rabbit"}`},
		{name: "api_key", hints: []string{"api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "auth_key", "authkey", "subscription-key", "functions-key"},
			find: family{shortest: 8, digit: true}.find, example: "x-api-key: " + "0123-4567-89ab"},
		{name: "token", hints: []string{"token"}, find: family{shortest: 12, digit: true, harmless: []string{"page", "next", "prev", "previous", "cursor", "continuation",
			"continue", "sync", "resume", "start", "begin", "end", "stop", "eos", "bos", "pad", "unk", "mask", "sep", "cls", "special", "idempotency", "first", "last", "max", "min", "num"}}.find,
			example: "https://api.example/v1?access_token=" + "0123456789abcdef"},
	}
}
