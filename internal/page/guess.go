package page

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// sampleSize is how much of a body is looked at to judge its encoding, bytes.
const sampleSize = 32 << 10

// candidate is an encoding and the characters that are frequent in the texts
// written in it. Letters of the same script that are not frequent count a
// little, everything else counts against it.
type candidate struct {
	name   string
	lang   string // what the html element's lang begins with
	common string
	script *unicode.RangeTable
	latin  bool // its letters stand alone between ASCII letters
}

// candidates are tried in this order; the first of equals wins. The frequent
// characters are those of ordinary prose in each language.
var candidates = []candidate{
	{"shift_jis", "ja", japanese, unicode.Han, false},
	{"euc-jp", "ja", japanese, unicode.Han, false},
	{"big5", "zh-tw zh-hant zh-hk", traditional, unicode.Han, false},
	{"gbk", "zh-cn zh-hans", simplified, unicode.Han, false},
	{"euc-kr", "ko", korean, unicode.Hangul, false},
	{"windows-1251", "ru uk bg sr", cyrillic, unicode.Cyrillic, false},
	{"koi8-r", "ru", cyrillic, unicode.Cyrillic, false},
	{"windows-1253", "el", "αοιετσνρηυπκμλςάίέόήύώΑΕΗΟΤ", unicode.Greek, false},
	{"windows-1255", "he", "יהולאתרמבשנדעחקפצםןגכטזסךףץ", unicode.Hebrew, false},
	{"windows-1256", "ar fa", "اليمونترسعبدفهقحجكطةأإىشصخضذئءؤ", unicode.Arabic, false},
	{"windows-874", "th", "านรกอเงมยลวดทสตะปบคหแ่้ีิั", unicode.Thai, false},
	{"windows-1252", "en de fr es it pt nl sv da no", "éèàçäöüßñóáíúêâîôûùëïãõåøæœÄÖÜÉÀ’‘“”–—…«»°·©®€£²½´¿¡", unicode.Latin, true},
	{"windows-1250", "pl cs sk hu ro hr sl", "ąęłńóśźżćčřšžěýáíéúůňďťőűöüăîâşţđŁŚŻĆČŘŠŽ„”“–…", unicode.Latin, true},
	{"windows-1254", "tr az", "çğıöşüâİŞÇÖÜ’“”–…", unicode.Latin, true},
	{"windows-1257", "lt lv et", "ąčęėįšųūžāēģīķļņõäöüŠŽĀČ„“”–…", unicode.Latin, true},
	{"windows-1258", "vi", "ăâđêôơưàáãèéìíòóùúýĐ\u0300\u0301\u0303\u0309\u0323", unicode.Latin, true},
}

const (
	traditional = "的一是不了人在有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得于著下自之年過發後作里用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活設備份說明臺灣市年請網站服務資訊電腦"
	simplified  = "的一是不了人在有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活设备份统置请网站服务资讯电脑今天局布数据显示"
	korean      = "이다의에을는가하고를은한지서도기로사자대리어인해수나시정아전일부라스게보제그니여과있주원상와구조장들성동만신선공유마안관비용경무소세국중화문모것생계방개되된음습님백업설내했습우위차체트드프르터각년월때때문및등"
	cyrillic    = "оеаинтсрвлкмдпу"
)

// japanese is kana and frequent kanji.
const japanese = "のにはをたがでてとしれさいるならもこよかくきまりうえそあせつけおみちやわんひふへほむめゆねぬろげごじずだどばびぶべぼぱぴぷぺぽっゃゅょ" +
	"アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワンガギグゲゴザジズゼゾダデドバビブベボパピプペポッャュョァィゥェォヴー" +
	"日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員九入選立開手米力学問高代明実円関決子動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法不来作性的要用制治度務強気小七成期公野協取都和統以機平総加山思家話世受区領多県続進正安設保改数記院女初北午指権心界支第産結百派点教報済書府活原先共得解名交資予川向際査勝面委告軍文反元重近千考判認画海参売利組知案道信策集在件団別物側任引使求所次水半品昨論計死官増係感特情投示変打男基私各始島直両朝革価式確村提運終挙果西勢減台広容必応演電歳住争談能無再位置企真流格有疑口過局少放税検藤町常校料沢裁状工建語球営空職証土与急止送援供可役構木割聞身費付施切由説転食比難防補車優夫研収断井何南石足違消境神番規術護展態導鮮備宅害配副算視条幹独警宮究育席輸訪楽起万着乗店述残想線率病農州武声質念待試族象銀域助労例衛然早張映限親額監環験追審商葉義伝働形景落欧担好退準賞訴辺造英被株頭技低毎医復仕去姿味負閣韓渡失移差衆個門写評課末守若脳極種美岡影命含福蔵量望松非撃佐核観察整段横融型白深字答夜製票況音申様財港識注呼渉達"

var punctuation = "、。，．・：；？！「」『』（）【】《》〈〉“”‘’…—－～％　○●■□▲△◆→①②③─│"

// guess names the encoding whose reading of the bytes looks most like
// language. lang is the html element's, and decides between near equals.
func guess(body []byte, lang string) string {
	if bytes.Contains(body, []byte("\x1b$B")) && bytes.Contains(body, []byte("\x1b(")) {
		return "iso-2022-jp"
	}
	if validUTF8(body) {
		return "utf-8"
	}
	sample := highLines(body)
	best, bestScore := "windows-1252", 0.1
	for _, c := range candidates {
		if s := c.score(sample, strings.ToLower(lang)); s > bestScore {
			best, bestScore = c.name, s
		}
	}
	return best
}

// highLines are the lines that have bytes outside ASCII, up to sampleSize.
func highLines(body []byte) []byte {
	var sample []byte
	for line := range bytes.Lines(body) {
		if bytes.ContainsFunc(line, func(r rune) bool { return r >= 0x80 }) {
			sample = append(sample, line[:min(len(line), sampleSize-len(sample))]...)
		}
		if len(sample) >= sampleSize {
			break
		}
	}
	return sample
}

func (c candidate) score(sample []byte, lang string) float64 {
	e, _ := charset.Lookup(c.name)
	text, err := e.NewDecoder().Bytes(sample)
	if err != nil {
		return -1
	}
	sum, n := 0.0, 0
	before := ' '
	for _, r := range string(text) {
		if r >= 0x80 {
			n++
			sum += c.weight(before, r)
		}
		before = r
	}
	if n == 0 {
		return -1
	}
	score := sum / float64(n)
	if lang != "" && strings.Contains(" "+c.lang+" ", " "+lang) {
		score += 0.15
	}
	return score
}

func isASCIILetter(r rune) bool { return r < 0x80 && unicode.IsLetter(r) }

// weight is what one character says for the candidate.
func (c candidate) weight(before, r rune) float64 {
	switch {
	case r == utf8.RuneError, r < 0xa0, unicode.Is(unicode.Co, r):
		return -5
	case !c.latin && isASCIILetter(before): // two alphabets do not share a word
		return -1
	case 0xff61 <= r && r <= 0xff9f: // half-width katakana: what Chinese becomes under Shift_JIS
		return -1
	case unicode.IsUpper(r) && unicode.IsLower(before): // words do not change case in the middle
		return -1
	case c.latin && before >= 0x80 && unicode.IsLetter(before) && unicode.IsLetter(r):
		return -0.5 // accented letters rarely stand side by side
	case strings.ContainsRune(c.common, unicode.ToLower(r)), strings.ContainsRune(c.common, r):
		return 1
	case strings.ContainsRune(punctuation, r):
		return 0.6
	case unicode.Is(c.script, r):
		return 0.2
	}
	return -0.5
}
