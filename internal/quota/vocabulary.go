package quota

// sense is what a phrase says about a launch.
type sense uint8

// Senses of refusal, in the order in which they win over each other.
const (
	noSense      sense = iota
	size               // the request can never be served
	spendCap           // money, and no wait mends it
	noModel            // the model does not exist for this account
	noCredit           // money, unless the text speaks of a reset
	noAccess           // authentication or permission
	busyNotLimit       // "not your usage limit"
	limited            // a limit of the account or the model is reached
	busy               // the provider has no capacity
	quotaWord          // quota-like, but no rule
	timedOut           //
	ownLimit           // a limit of the program itself: turns, memory, depth
	warning            // near a limit, not at it
)

// weakLimit names the bare mention of a rate limit: in plain text it may be the
// subject of any sentence.
const weakLimit = "rate-limit-word"

// freeTier names the end of a free allowance: money only where nothing else is
// said.
const freeTier = "free-tier"

var refusals = newLexicon([]group{
	{size, "too-large", `
		request|prompt|input|payload|entity|content|body|message|messages|conversation|packet|context|transcript|history ~2 too large|long
		request|prompt|payload|entity|context ~2 too big
		request|payload|body|prompt|input ~2 exceeds|exceeded|exceed|over ~4 maximum|max|allowed ~1 size|length
		body|payload|request|upload limit ~1 exceeded|http
		request body limit
		reduce|shorten|trim ~2 length|size ~3 messages|prompt|input|request|context
		range of input length
		tokens ~3 maximum
		input|inputs ~2 tokens ~8 must be
		tokens must be reduced
		maximum ~1 prompt|input|request length|size|tokens
		too many tokens in ~2 prompt|request|input|message|messages
		请求 ~4 过大
		输入 ~4 过长`},
	{size, "context", `
		context length|window|size|limit|budget ~4 exceeded|exceeds|exceed|full|overflow|overflowed|reached
		exceed|exceeds|exceeded|exceeding|overflow|overflows|overflowed|beyond|outgrew|larger|longer|over ~6 context ~1 window|length|limit|size
		reached|hit|exhausted|exceeded|filled ~3 context window|length|limit|size
		maximum|max context length|window|size
		context|window overflow
		context window limit
		room in ~3 context
		token|tokens count ~4 exceeds|exceed|exceeded
		tokens exceeds|exceed ~3 maximum|limit|window
		exceeds|exceed|exceeded ~2 maximum|max number of ~3 tokens
		exceeds|exceed|exceeded ~2 limit of ~3 tokens
		上下文 ~8 超
		超 ~8 上下文
		最大 ~4 长度`},
	{spendCap, "spend-cap", `
		spend|spending|spent|budget cap|limit|limits|quota ~4 reached|exceeded|hit|exhausted
		hit|reached|exceeded|exceeds|exhausted|over|surpassed ~6 spend|spending|spent cap|limit|limits|quota
		spend|spending cap|limit ~2 set
		spending cap|limit
		spend cap
		billing hard limit
		hard limit ~3 reached
		insufficient quota
		specified ~1 usage limits|limit
		exceeded|exceeds ~2 budget
		budget ~3 been exceeded
		monthly budget`},
	{spendCap, "disabled", `
		usage|allocation|quota|credits|billing ~5 disabled ~1 by ~3 admin|admins|administrator|administrators|owner|owners
		usage ~1 paused`},
	{noModel, "model", `
		model|models ~12 not exist|found|supported|recognized|offered
		model|models ~3 not available
		model|models ~8 no longer available|supported
		model|models ~5 deprecated|retired|decommissioned|discontinued|removed|nonexistent
		model|models ~3 invalid|unknown|unsupported
		unknown|unsupported|nonexistent ~1 model
		invalid model
		no such model
		not have access to ~3 model
		issue with the selected model
		no endpoints|endpoint found
		deployment ~6 not exist
		模型 ~12 不存在`},
	{noCredit, "credit", `
		credit|credits|balance|funds|prepayment ~4 too low
		credit|credits|balance|funds|prepayment ~4 insufficient|exhausted|depleted|required|expired|negative|zero|empty
		credit|credits|balance|funds ~3 ran|run out
		insufficient|no|zero|low|exhausted|depleted ~2 credit|credits|balance|funds
		not enough ~2 credit|credits|balance|funds
		out of ~4 credit|credits|funds
		used ~1 all ~4 credit|credits
		used up ~4 credit|credits
		credit|credits ~3 used up
		credits required
		exceeded|exceeds|exhausted ~4 credit|credits
		requires|require|need|needs ~1 more credits
		extra usage ~3 required|disabled|exhausted|unavailable
		out of extra usage
		余额 ~4 不足
		余额 ~4 耗尽
		欠费
		充值`},
	{noCredit, "billing", `
		plan and billing details
		billing ~3 disabled|inactive|suspended|overdue
		billing ~3 not ~1 active|enabled
		billing to be enabled
		enable billing
		issue|problem with ~4 billing|payment
		billing error|issue|problem|failure
		account ~4 good standing
		account ~3 overdue|arrears|delinquent
		arrearage
		payment ~3 failed|overdue|declined|due
		with your ~3 plan upgrade
		usage not included
		trial ~4 expired|ended|over
		subscription ~4 expired|ended|inactive|canceled|cancelled|lapsed
		org|organization|organisation|workspace|team|company monthly ~2 limit|quota|cap`},
	{noCredit, freeTier, `
		free tier ~5 exhausted|exceeded|ended
		free tier only
		free usage|quota|allowance|credits ~2 exceeded|exhausted|used
		exhausted|exceeded ~3 free tier|usage|quota|allowance`},
	{noAccess, "credentials", `
		invalid|incorrect|missing|bad|expired|revoked|malformed|wrong ~3 key
		key|keys ~3 invalid|expired|revoked|missing|disabled|incorrect
		key ~2 not ~1 valid|found|provided|set
		no api key|keys ~2 provided|found|set|given|available|configured
		not|no|longer logged in
		logged out
		run login
		log|sign in again
		please log|sign in
		unauthenticated
		authentication|auth ~2 failed|error|required|failure|expired|invalid
		failed|unable|could|cannot ~2 authenticate
		re authenticate
		reauthenticate
		invalid|expired|revoked|missing ~2 authentication|token|credential|credentials
		oauth|access|auth|refresh|bearer|session token ~4 expired|revoked|invalid
		token ~2 expired|revoked
		login|session|credentials ~2 expired
		鉴权失败
		身份验证 ~4 失败
		令牌 ~6 过期`},
	{noAccess, "access", `
		disabled ~5 access
		access ~4 disabled|revoked|suspended|forbidden|restricted
		access ~1 denied
		disabled organization|organisation|account|workspace
		organization|organisation|account|workspace|user|seat ~3 been disabled|suspended|deactivated|banned
		account|organization ~2 disabled|suspended|deactivated|banned|terminated|locked|inactive
		org ~2 not allowed
		not allowed ~4 organization|organisation|account|plan
		unauthorized
		not authorized
		country|region|territory ~4 not supported|available|allowed
		unsupported country|region
		not ~2 have ~3 access|permission|permissions
		no access to
		insufficient ~1 permission|permissions|scope|scopes
		resource not accessible
		license|seat ~3 required|expired|missing
		ip ~3 not allowed|whitelisted`},
	{busyNotLimit, "not-your-limit", `
		temporarily limiting requests
		not your usage|rate ~1 limit`},
	{limited, "rate-limit", `
		rate limit|limits|limited|limiting|limiter ~6 reached|exceeded|hit|exhausted
		rate limited
		ratelimit|ratelimited|ratelimiting reached|exceeded
		ratelimited
		too many ~2 requests|tokens
		throttled|throttling
		速率限制
		请求 ~4 频繁
		请求 ~4 过多
		频率 ~4 限
		限流
		并发 ~4 过高`},
	{limited, weakLimit, `
		rate limit|limits
		ratelimit`},
	{limited, "resource", `
		resource|resources ~3 exhausted`},
	{limited, "limit-reached", `
		hit|reached|exceeded|exceed|exceeds|exhausted|surpassed|reaching|exceeding|depleted|maxed ~8 limit|limits|quota|quotas|allowance|allotment|capacity
		limit|limits|quota|quotas|allowance|allotment ~3 reached|exceeded|hit|exhausted|surpassed|met|depleted|used
		used ~1 up ~6 quota|limit|allowance|usage|requests|messages
		used all ~6 quota|limit|allowance|usage|requests|messages
		out of ~4 quota|requests|messages|usage|prompts
		no ~3 requests|messages|prompts remaining|left
		no ~2 quota
		100 used
		0 left|remaining
		limite|limites|cuota|cota ~6 atingido|atingida|alcanzado|alcanzada|alcancado|superado|superada|excedido|excedida|raggiunto|raggiunta|atteinte|atteint|depassee|agotada|esgotada|esaurita
		alcanzado|alcanzaste|atingiu|atingido|alcancou|atteint|superado|superato|excedido|excedeu|raggiunto|depasse|agotado|esgotou|esaurito ~6 limite|limites|cuota|cota|quota
		limit|limits|nutzungslimit|sitzungslimit|wochenlimit|ratenlimit|kontingent|quota ~4 erreicht|uberschritten|erschopft|aufgebraucht
		使用上限
		达到 ~14 上限
		已达 ~14 上限
		超 ~8 限额
		超 ~8 配额
		额度 ~4 用
		额度 ~4 耗尽
		配额 ~4 用
		上限 ~4 達
		制限 ~4 達
		制限 ~4 超
		한도 ~6 초과
		한도 ~6 도달`},
	{limited, "limit-resets", `
		limit|limits|quota|quotas|allowance ~4 reset|resets|resetting|renews|refreshes
		limit|limits ~4 reinicia|restablece|restablecera|zuruckgesetzt`},
	{busy, "overload", `
		overloaded|overload|overloading|overcapacity
		at|over|beyond|no|insufficient|limited|out|without ~3 capacity
		capacity ~3 exhausted|exceeded|constrained|constraints|reached|unavailable|limits|issues
		high|heavy|unusual|increased|peak|unprecedented ~2 demand|load|traffic|volume|usage
		server|servers|service|engine|system|model|backend ~3 busy
		过载
		繁忙
		访问量 ~4 大
		拥挤
		高负载
		混雑`},
	{quotaWord, "quota-word", `
		quota|quotas|billing|credits|allowance|overage|payment|subscription|entitlement
		usage|plan|rate|spend|spending|token ~1 limit|limits|cap|caps|policy
		daily|weekly|monthly|hourly|session limit|limits|cap
		配额
		额度
		限额
		计费`},
	{timedOut, "timed-out", `
		timed out
		timeout|timeouts|timedout|etimedout|esockettimedout
		time out
		deadline exceeded
		wall clock budget
		超时`},
	{ownLimit, "own-limit", `
		turn|turns|retry|retries|memory|heap|time|disk|file|files|recursion|depth|line|stack|cpu|iteration|iterations|step|steps|process|processes|descriptor|nesting|loop|redirect|size|complexity|coverage|column|character|inode ~1 limit|limits|quota|budget
		limit|limits|maximum ~3 turns|iterations|retries|recursion|redirects
		maximum|max ~3 turns|budget|recursion|retries|iterations|steps
		own limit|budget
		output token maximum|limit`},
	{warning, "warning", `
		approaching|approaches|nearing|near|nearly|almost|soon
		close|closer to
		about to
		warning
		heads up
		proximo|proxima
		cerca
		acercandose|acercando|aproximando|aproxima
		approchez|approche|proche
		fast|bald|nahe
		quasi
		临近
		接近
		即将`},
})

// codesOnly holds phrases that are too common in prose to mean anything
// outside of a structured field.
var codesOnly = newLexicon([]group{
	{noAccess, "access-code", `
		permission denied|error
		forbidden`},
	{noCredit, "credit-code", `
		billing error
		credits|payment required`},
	{limited, "limit-code", `
		usage|rate|quota|session|request|token limit
		rate limit
		quota exceeded`},
	{size, "size-code", `
		prompt too long
		context ~1 overflow|limit`},
})

// anchors are the words that a reset is stated with.
var anchors = newLexicon([]group{
	{anchorReset, "reset", `
		reset|resets|resetting|renew|renews|renewing|renewal|refresh|refreshing|refreshes|refreshed|replenish|replenishes|restored|restores|reopens|resumes|unlocks|lifted|lifts
		regain access
		reinicia|reinician|reiniciara|restablece|restablecera|restablecen|renueva|redefine|redefinido|redefinida
		zuruckgesetzt|zuruck
		reinitialise|reinitialisee|reinitialisation
		ripristina|ripristinato|reimposta
		重置
		恢复
		刷新
		リセット
		초기화`},
	{anchorRetry, "retry", `
		try|retry|retries again
		retry|try in|after|at|on
		available again|in|at|on|after
		again in|at|on|after
		continue|continues|resume|resumed|returns|return|expires|ends|opens|starts ~1 in|at|on|after
		access again
		wait
		back at|on|in|after
		come back
		cooldown|cooling
		until
		retry delay
		intentalo|intente|intenta|tente|reessayez|reessayer|riprova ~2 nuevo|novamente|en|dans|em|in|tra
		erneut
		重试
		再试
		再試行`},
	{anchorOwn, "own", `
		retrying ~1 in|after
		reconnecting in|after
		next attempt|retry|try in|at
		waiting|sleeping|backoff
		backing off
		retry delay ms`},
})

// Senses of anchors.
const (
	anchorReset sense = 100 + iota // the limit resets
	anchorRetry                    // the provider names a wait
	anchorOwn                      // the program says when it will try again
)
