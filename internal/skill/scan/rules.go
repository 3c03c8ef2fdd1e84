package scan

import (
	"regexp"
	"sync"
)

// where a rule looks.
type where int

const (
	anywhere where = iota
	prose          // instructions and references
	scripts        // files that are code
)

// rule is a row of the table. The pattern sees folded text (lower case); its
// blanks match line breaks. unless is looked for in the lines of a match and
// takes it back. quoted is the severity of a phrase that is only spoken about.
type rule struct {
	id       string
	severity Severity
	quoted   Severity
	where    where
	pattern  string
	unless   string
	about    string
}

// compiled is a rule ready to be looked for.
type compiled struct {
	rule
	pattern, unless *regexp.Regexp
	hints           []string // see hints.go
}

// rules is the table compiled with the first scan, not when a function starts.
var rules = sync.OnceValue(func() []compiled {
	all := make([]compiled, len(table))
	for i, r := range table {
		all[i] = compiled{rule: r, pattern: regexp.MustCompile(r.pattern), hints: hints(r.pattern)}
		if r.unless != "" {
			all[i].unless = regexp.MustCompile(r.unless)
		}
	}
	return all
})

// Parts of patterns.
const (
	fetch   = `(?:curl|wget|fetch|aria2c|iwr|irm|invoke-webrequest|invoke-restmethod)`
	bin     = `(?:/(?:usr/)?(?:local/)?bin/)?`
	wrapper = `(?:` + bin + `(?:sudo|doas|env|nohup|exec|command|builtin|time|nice|setsid|busybox|xargs)\s+(?:-\S+\s+)*)*`
	shell   = wrapper + bin + `(?:ba|z|k|da|fi)?sh\b`
	runner  = `(?:` + shell + `|` + wrapper + bin + `(?:python[23]?|node|perl|ruby|php|osascript|iex|invoke-expression|powershell|pwsh|cmd)\b)`
	// What takes its orders from a pipe: a shell always, an interpreter unless it
	// is given its program.
	sink = `(?:` + shell + `|` + wrapper + bin + `(?:python[23]?(?:\.\d+)?|node|perl|ruby|php|osascript)(?:["'` + "`" + `]|(?:\s+-[abdf-lo-z]?)*\s*[\n;&|)` + "`" + `])|` +
		wrapper + `(?:iex|invoke-expression|powershell|pwsh|cmd)\b)`
	word    = `(?:'[^'\n]*'|"[^"\n]*"|[^\n|;])*`
	url     = `https?://[^\s"'<>` + "`" + `)]+`
	userCJK = `(?:使用者|用户|用戶)`
	secrets = `(?:~|\$home|\$\{home\}|/root|/home/[\w.-]+|/users/[\w.-]+|%userprofile%|homedir\(\)|expanduser\()[^\n]{0,30}?(?:\.ssh/(?:id_|\*|authorized)|\.aws/credentials|\.git-credentials|\.netrc|\.npmrc|\.pypirc|\.docker/config\.json|\.kube/config|\.gnupg|\.config/gcloud|\.azure|\.claude/\.credentials|login data|cookies\.sqlite|wallet\.dat|\.electrum|keychains)`
)

// table has the rules, in the order of what they guard.
var table = []rule{
	// Fetched and run.
	{id: "download.piped", severity: Critical, about: "what is fetched from the network is run without being seen",
		pattern: `\b` + fetch + `\b` + word + `(?:\\\n` + word + `)*(?:\|` + word + `(?:\\\n` + word + `)*){0,6}\|&?[\s\\({"']*` + sink},
	{id: "download.piped", severity: Critical, about: "what is fetched from the network is run without being seen",
		pattern: runner + `\s*(?:-\w+\s*)*(?:<+\s*)?["']?(?:\$\(|<\(|` + "`" + `)\s*` + fetch + `\b`},
	{id: "download.piped", severity: Critical, about: "what is fetched from the network is run without being seen",
		pattern: `(?:\beval|\bsource(?:\s+/dev/stdin)?|(?:^|[\n;&|(])\s*\.)\s+(?:<+\s*)?["']?(?:\$\(|<\(|` + "`" + `)\s*` + fetch + `\b`},
	{id: "download.piped", severity: Critical, about: "what is fetched from the network is run without being seen",
		pattern: `\b(?:iex|invoke-expression)\b[^\n]{0,60}(?:` + fetch + `|downloadstring|net\.webclient)`},
	{id: "download.exec", severity: Critical, about: "what is fetched from the network is run as code",
		pattern: `\b(?:exec|eval)\s*\(\s*(?:compile\(\s*)?(?:await\s+)?(?:requests\.get|urllib\.request\.urlopen|urlopen|httpx\.get|fetch|\(await fetch)\b`},
	{id: "download.exec", severity: Critical, about: "what is fetched from the network is run as code",
		pattern: `\b(?:deno|bun)\s+(?:run\s+)?(?:-\S+\s+)*["']?https?://|\bmshta(?:\.exe)?\s+["']?(?:https?|javascript|vbscript):|\bcertutil(?:\.exe)?\b[^\n]{0,40}[-/]urlcache\b|\bbitsadmin(?:\.exe)?\b[^\n]{0,40}/transfer\b|\bregsvr32(?:\.exe)?\b[^\n]{0,40}/i:https?://`},
	{id: "download.decoded", severity: Critical, about: "encoded code is decoded and run",
		pattern: `\bbase64\s+(?:-d|--decode|-di)\b[^\n]{0,40}\|\s*` + sink},
	{id: "download.program", severity: High, about: "the reader is told to fetch a program and run it",
		pattern: url + `\.(?:exe|msi|scr|dmg|pkg|bat|cmd|ps1|vbs|jar|apk|appimage|hta|lnk)\b[^\n]{0,80}(?:\n[^\n]{0,80})?\b(?:run|execute|open|launch|install|double-click)\b`},
	{id: "download.program", severity: High, about: "the reader is told to fetch a program and run it",
		pattern: `\b(?:run|execute|launch|install|download)\b[^\n]{0,60}` + url + `\.(?:exe|msi|scr|dmg|pkg|bat|cmd|ps1|vbs|jar|apk|appimage|hta|lnk)\b`},
	{id: "download.program", severity: High, about: "the reader is told to fetch a program and run it",
		pattern: `(?:下載|下载|ダウンロード)[^\n]{0,60}` + url + `\.(?:exe|msi|scr|dmg|pkg|bat|cmd|ps1|vbs|jar|apk|zip)[^\n]{0,60}(?:執行|执行|運行|运行|安裝|安装|実行|インストール)`},
	{id: "download.password", severity: High, about: "the reader is told to open an archive with a password, which hides it from virus scanners",
		pattern: `(?:\.zip|\.7z|\.rar|\barchive)[^\n]{0,100}\b(?:pass(?:word|code)?|pwd)\b\s*(?:is|:|=|")\s*\S|(?:\bextract|\bunzip|\bunpack|解壓|解压|解凍)[^\n]{0,60}(?:\bpass(?:word|code)\b|密碼|密码|パスワード)\s*(?:is|:|：|=|為|为|は)`},
	{id: "download.paste", severity: High, about: "a command is to be taken from a page that anybody can change",
		pattern: `https?://(?:www\.)?(?:pastebin\.com/raw|glot\.io/snippets|rentry\.(?:co|org)/|paste\.ee/|hastebin\.com/|ghostbin\.|0x0\.st/|transfer\.sh/|termbin\.com/|dpaste\.)`},
	{id: "download.remote_orders", severity: Medium, where: prose, about: "the skill takes its instructions from a page that may change after it was checked",
		pattern: `\b(?:fetch|load|download|retrieve|read|follow|obey)\b[^.\n]{0,40}\b(?:instructions|prompt|orders|directives)\b[^.\n]{0,20}\b(?:from|at)\b\s+<?` + url},
	{id: "download.no_pin", severity: Low, about: "a package is installed from an address over plain http or without TLS checks",
		pattern: `\b(?:pip3?|uv|npm|pnpm|yarn|gem)\b[^\n]{0,60}(?:--(?:extra-)?index-url[= ]http://|--trusted-host|--registry[= ]http://)|\b(?:curl|wget)\b[^\n]{0,60}\s(?:-k|--insecure|--no-check-certificate)\b`},

	// Data on its way out.
	{id: "exfil.environment", severity: Critical, about: "all environment variables, and the secrets among them, are sent out",
		pattern: `\b(?:env|printenv|set)\b\s*(?:\|\s*(?:base64|gzip|sort|xxd)\b[^\n|]*)*\|\s*(?:curl|wget|nc|ncat|socat)\b|\b(?:curl|wget)\b[^\n]{0,120}(?:\$\(|` + "`" + `)\s*(?:env|printenv)\b|(?:requests|httpx|axios|session)\.(?:post|put|get)\([^\n]{0,120}\bos\.environ\s*[,)}]|(?:fetch|axios\.post|axios)\([^;]{0,200}json\.stringify\(\s*process\.env\s*\)|(?:fetch|axios)[^\n]{0,120}body:\s*process\.env\b`},
	{id: "exfil.secret_file", severity: Medium, about: "a file that holds credentials is read",
		pattern: `\b(?:cat|cp|scp|tar|zip|base64|less|head|tail|grep|open|read_text|readfile(?:sync)?|path|curl|rsync|get-content|type)\b[^\n]{0,60}` + secrets},
	{id: "exfil.secret_file", severity: Medium, about: "a file that holds credentials is read",
		pattern: `\bsecurity\s+(?:find-(?:generic|internet)-password|dump-keychain)\b|\bcat\s+/etc/(?:shadow|sudoers)\b|\bsecretsdump\b|\bmimikatz\b`},
	{id: "exfil.upload", severity: Critical, about: "a file that holds credentials is sent out",
		pattern: `\b(?:curl|wget|nc|scp|rsync)\b[^\n]{0,160}(?:@|<\s*|\s)` + secrets},
	{id: "exfil.endpoint", severity: High, about: "data goes to an address that is made for catching it",
		pattern: `\b(?:webhook\.site|requestbin\.(?:com|net|io)|[\w-]+\.m\.pipedream\.net|hookbin\.com|beeceptor\.com|[\w-]+\.burpcollaborator\.net|[\w-]+\.oast(?:ify)?\.(?:com|me|fun|live|site|online|pro)|[\w-]+\.interact\.sh|[\w-]+\.ngrok(?:-free)?\.(?:io|app)|[\w-]+\.trycloudflare\.com|canarytokens\.com)\b`},
	{id: "exfil.endpoint", severity: Medium, about: "data goes to a chat that the skill's author chose",
		pattern: `https://(?:(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/\d{15,}/|api\.telegram\.org/bot\d{8,}:|hooks\.slack\.com/services/t[a-z0-9]{8,}/)`},
	{id: "exfil.raw_address", severity: Medium, where: scripts, about: "data goes to or comes from a bare number on the network",
		pattern: `https?://(?:\d{1,3}\.){3}\d{1,3}`, unless: `https?://(?:127\.|10\.|192\.168\.|0\.0\.0\.0|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|(?:192\.0\.2|198\.51\.100|203\.0\.113)\.)`},
	{id: "exfil.image", severity: High, where: prose, about: "a picture's address carries data out as soon as the answer is shown",
		pattern: `!\[[^\]\n]*\]\(\s*https?://[^)\s]+[?&/][^)\s]*(?:=|/)(?:\{\{?|\$\{?|<|%7b|\[)\s*[a-z_ -]+`},
	{id: "exfil.dns", severity: High, about: "data is carried out in names that are looked up",
		pattern: `\b(?:nslookup|dig|host|ping)\s[^\n` + "`" + `]{0,40}(?:\$\([^\n]{1,80}\)|` + "`[^`\\n]{1,80}`" + `)[\w.-]*\.[a-z0-9-]+\.[a-z]{2,}`},
	{id: "exfil.order", severity: High, quoted: Medium, about: "the reader is told to send secrets or the conversation somewhere",
		pattern: `\b(?:send|upload|post|transmit|forward|exfiltrate|leak|email)\b[^.\n]{0,60}\b(?:api[ _-]?keys?|credentials?|passwords?|private keys?|secrets?|access tokens?|environment variables|\.env file|conversation history|chat history|system prompt|user'?s? (?:files|data))\b[^.\n]{0,40}\b(?:to|at|via)\b\s+[^.\n]{0,30}(?:https?://|[\w.+-]+@[\w-]+\.\w|webhook|our server|this (?:url|address|endpoint))`},
	{id: "exfil.order", severity: High, quoted: Medium, about: "the reader is told to send secrets or the conversation somewhere",
		pattern: `(?:把|將|将)[^。\n]{0,20}(?:密碼|密码|金鑰|密钥|憑證|凭证|環境變數|环境变量|對話紀錄|对话记录|系統提示|系统提示)[^。\n]{0,20}(?:傳送|发送|發送|上傳|上传|寄|传)[^。\n]{0,10}(?:到|至|給|给)[^。\n]{0,10}(?:https?://|[\w.+-]+@)`},
	{id: "exfil.order", severity: High, quoted: Medium, about: "the reader is told to send secrets or the conversation somewhere",
		pattern: `(?:パスワード|apiキー|秘密鍵|認証情報|環境変数|会話履歴|システムプロンプト)[^。\n]{0,10}を[^。\n]{0,30}(?:https?://[^。\n]{0,80}|[\w.+-]+@[\w.-]+)\s*(?:に|へ)[^。\n]{0,10}(?:送信|アップロード|送)`},

	// Orders against the user.
	{id: "injection.override", severity: High, quoted: Medium, about: "the reader is told to ignore its instructions",
		pattern: `\b(?:ignore|disregard|forget|override|bypass|discard)\s+(?:all\s+(?:of\s+)?|any\s+|every\s+)?(?:the\s+|your\s+|these\s+|its\s+)?(?:all\s+)?(?:previous|prior|preceding|foregoing|earlier|system|original|initial|existing)\s+(?:system\s+|safety\s+)?(?:instructions?|prompts?|directives?|guidelines|orders|programming|context)\b`},
	{id: "injection.override", severity: High, quoted: Medium, about: "the reader is told to ignore its instructions",
		pattern: `\b(?:ignore|disregard|forget|override)\s+(?:all\s+(?:of\s+)?|everything\s+)(?:the\s+|your\s+)?(?:above|instructions|you(?:'ve| have| were) (?:been )?told)`},
	{id: "injection.override", severity: High, quoted: Medium, about: "the reader is told to ignore its instructions",
		pattern: `(?:忽略|無視|无视|忘記|忘记|不要理會|不要理会)\s*(?:掉)?(?:你|您)?(?:所有|之前|以上|先前|前面|上述|一切|原本|原先|系統|系统|的|全部|任何){1,5}[^。，,\n]{0,4}(?:指令|指示|命令|設定|设定|提示(?:[^音框窗聲声視视欄栏]|$))`},
	{id: "injection.override", severity: High, quoted: Medium, about: "the reader is told to ignore its instructions",
		pattern: `(?:これまで|以前|上記|前|元|システム)の(?:すべての|全ての|あらゆる)?(?:指示|命令|プロンプト|システムプロンプト|設定)\s*を\s*(?:すべて|全て|全部)?(?:無視|忘れ|破棄)`},
	{id: "injection.conceal", severity: High, quoted: Medium, about: "the reader is told to hide something from the user",
		pattern: `\b(?:do\s+not|don't|never|must\s+not|without)\s+(?:ever\s+)?(?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|notify(?:ing)?|mention(?:ing)?\s+(?:this|it|that)\s+to|reveal(?:ing)?\s+(?:this|it|that)\s+to|let(?:ting)?)\s+(?:the\s+|your\s+)?(?:user|human|operator|owner|victim)s?\b(?:\s+(?:know|about|that|of|what|you)|\s*[.!\n]|$)`},
	{id: "injection.conceal", severity: High, quoted: Medium, about: "the reader is told to hide something from the user",
		pattern: `\b(?:hide|conceal)\s+(?:this|it|these|that|the\s+(?:command|action|request|output|fact))[^.\n]{0,20}\s+from\s+the\s+(?:user|human|operator|owner)\b`},
	{id: "injection.conceal", severity: High, quoted: Medium, about: "the reader is told to hide something from the user",
		pattern: `(?:不要|不得|不可|別|别|勿|切勿)(?:把[^。\n]{0,15})?(?:告訴|告诉|告知|透露給|透露给|(?:讓|让)` + userCJK + `(?:知道|發現|发现|察覺|察觉))\s*(?:` + userCJK + `)?`, unless: `(?:他人|其他人|別人|别人|第三方|任何人)`},
	{id: "injection.conceal", severity: High, quoted: Medium, about: "the reader is told to hide something from the user",
		pattern: `ユーザー?に(?:は)?(?:絶対に|決して)?(?:このことを|これを)?(?:知らせ|伝え|教え|告げ|明かさ|気づかれ)(?:ない|ず|るな)`},
	{id: "injection.persona", severity: High, quoted: Low, about: "the reader is told that no rules bind it",
		pattern: `\byou\s+are\s+(?:now\s+)?(?:dan\b|in\s+(?:developer|god|jailbreak|unrestricted)\s+mode|jailbroken|no\s+longer\s+bound\b|(?:completely\s+)?(?:unrestricted|uncensored)\b)`},
	{id: "injection.markers", severity: High, quoted: Low, where: prose, about: "marks of a model's prompt format let text pose as the system's",
		pattern: `<\|(?:im_start|im_end|system|start_header_id|eot_id|endoftext)\|>|<<sys>>|\[/?inst\]|</?(?:system|assistant)(?:_prompt|-reminder)?>\s`},
	{id: "injection.safety", severity: High, quoted: Low, about: "the reader is told to get round what asks the user first",
		pattern: `--dangerously-skip-permissions|\b(?:bypass|disable|circumvent|turn\s+off|skip)\s+(?:all\s+|any\s+|the\s+|your\s+)*(?:safety|security|permission|approval|confirmation|sandbox)\s+(?:checks?|prompts?|requirements?|restrictions?|filters?|guardrails?|gates?)\b`,
		unless:  `\b(?:do\s+not|don't|never|must\s+not|cannot|can't|without|avoid|refuse|attempts?\s+to|tries\s+to|trying\s+to)\b`},
	{id: "injection.authority", severity: High, quoted: Medium, about: "the text poses as an order of somebody above the user",
		pattern: `(?:\[|^|\n)\s*(?:system|admin(?:istrator)?|developer|anthropic|openai)\s+(?:override|notice|message|directive|instruction)\s*[\]:]`},

	// Staying, hiding and breaking.
	{id: "code.reverse_shell", severity: Critical, about: "a shell is opened to somebody on the network",
		pattern: `/dev/(?:tcp|udp)/[\w.$\{\}-]+/|\b(?:nc|ncat|netcat)\b[^\n]{0,40}\s-(?:[a-z]*e|c)\s+\S*sh\b|\bbash\s+-i\s*>&|\bmkfifo\b[^\n]{0,80}\|\s*(?:nc|ncat|netcat)\b|\bpty\.spawn\(|\bos\.dup2\(\s*\w+\.fileno\(\)`},
	{id: "code.obfuscated", severity: High, about: "code is hidden and decoded when it runs",
		pattern: `\b(?:eval|exec|function|new\s+function)\s*\(\s*(?:compile\s*\(\s*)?(?:atob|base64\.b64decode|b64decode|zlib\.decompress|bytes\.fromhex|codecs\.decode|marshal\.loads|buffer\.from\([^)\n]*['"](?:base64|hex)|string\.fromcharcode|__import__\(\s*['"](?:base64|zlib|marshal))`},
	{id: "code.obfuscated", severity: High, about: "code is hidden and decoded when it runs",
		pattern: `\b(?:powershell|pwsh)(?:\.exe)?\b[^\n]{0,80}\s-e(?:nc(?:odedcommand)?)?\s+[a-z0-9+/=]{40,}`},
	{id: "code.obfuscated", severity: High, about: "code is hidden and decoded when it runs", where: scripts,
		pattern: `(?:\\x[0-9a-f]{2}){30,}|(?:chr\(\d+\)\s*[+,.]\s*){12,}`},
	{id: "code.persists", severity: High, about: "the skill makes itself run again later",
		pattern: `(?:>>|tee\s+-a)\s*["']?(?:~|\$home|\$\{home\})/\.(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv)\b|\|\s*crontab\s+-|\bcrontab\s+-l\b[^\n]{0,80}\|\s*crontab\b|\blaunchctl\s+load\b|/library/launch(?:agents|daemons)/[^\n]{0,60}\.plist|\bschtasks\b[^\n]{0,20}/create\b|currentversion\\+run\b|>>\s*["']?(?:~|\$home)?/?\.?[\w/.-]*authorized_keys`},
	{id: "code.instructions", severity: Medium, about: "the agent's own instructions are rewritten",
		pattern: `(?:>>?|tee(?:\s+-a)?)\s*["']?(?:~|\$home|\.)?/?[\w/.-]*\b(?:claude|agents|soul|memory)\.md\b`},
	{id: "code.destroys", severity: High, about: "a command removes everything", unless: `\b(?:never|do\s+not|don't|avoid|block(?:s|ed)?|refuse[sd]?|deny|denied|dangerous|forbidden|prohibited)\b`,
		pattern: `\brm\s+(?:-[a-z-]+\s+)*-(?:[a-z]*r[a-z]*f|[a-z]*f[a-z]*r)[a-z]*\s+(?:--no-preserve-root\s+)?["']?(?:/|~/?|\$home/?|/\*|\$\{home\}/?)["']?(?:\s|$|;|&)|\bmkfs\.\w+\s+/dev/|\bdd\s+[^\n]{0,40}of=/dev/(?:sd|nvme|disk|hd)|:\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}`},
	{id: "code.weakens", severity: Medium, about: "a guard of the machine is taken away",
		pattern: `\bxattr\s+-[a-z]*[dc]r?\s+[^\n]{0,20}(?:com\.apple\.quarantine|-r)|\bspctl\s+--master-disable\b|\bsetenforce\s+0\b|\bset-mppreference\b[^\n]{0,40}disablerealtimemonitoring|\bufw\s+disable\b|\bchmod\s+(?:-r\s+)?0?777\s+/`},
	{id: "rights.everything", severity: Medium, where: prose, about: "the skill asks for every tool without a question",
		pattern: `\nallowed-tools:\s*["']?(?:\*|bash\(\*(?::\*)?\)|[^\n]*\bbash\(\*(?::\*)?\))`},
	{id: "code.miner", severity: Critical, about: "the machine is used to mine coins",
		pattern: `\bstratum\+(?:tcp|ssl)://|\bxmrig\b|\bcoinhive\b`},

	// What a script is able to do. No danger by itself.
	{id: "code.sends", severity: Info, where: scripts, about: "the script sends data over the network",
		pattern: `\b(?:requests|httpx|axios|session)\.(?:post|put|patch)\(|\bcurl\b[^\n]{0,120}\s(?:-d|--data[\w-]*|-f|--form|-t|--upload-file|-x\s*(?:post|put))\b|\bfetch\([^;]{0,120}method:\s*['"](?:post|put)|\burllib\.request\.request\([^\n]{0,80}data=|\bsmtplib\.smtp|\bsocket\.(?:socket|create_connection)\(|\bhttp\.client\.https?connection|\bnc\s+-?\w*\s*[\w.-]+\s+\d{2,5}`},
	{id: "code.runs", severity: Info, where: scripts, about: "the script runs other programs",
		pattern: `\bsubprocess\.(?:run|popen|call|check_output|check_call)\(|\bos\.system\(|\bchild_process\b|\bexecsync\(|\bspawnsync\(`},
}
