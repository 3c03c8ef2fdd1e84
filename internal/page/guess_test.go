package page

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"
)

var prose = []struct{ encoding, text string }{
	{"big5", "臺北市政府今日宣布，自下個月起將擴大公共運輸月票的適用範圍，民眾可憑票卡搭乘捷運、公車以及市區公共自行車。"},
	{"big5", "備份設定說明"},
	{"big5", "購物車裡沒有商品"},
	{"gbk", "国家统计局今天公布的数据显示，上半年居民消费价格总体平稳，工业生产保持增长，就业形势总体稳定。"},
	{"gbk", "系统备份设置说明"},
	{"gbk", "欢迎光临本店，全场包邮"},
	{"shift_jis", "東京都は本日、公共交通機関の利用を促進するため、来月から新しい定期券の販売を始めると発表しました。"},
	{"shift_jis", "バックアップの設定方法"},
	{"euc-jp", "東京都は本日、公共交通機関の利用を促進するため、来月から新しい定期券の販売を始めると発表しました。"},
	{"iso-2022-jp", "東京都は本日、公共交通機関の利用を促進するため、来月から新しい定期券の販売を始めると発表しました。"},
	{"euc-kr", "서울시는 오늘 대중교통 이용을 늘리기 위해 다음 달부터 새로운 정기권을 판매한다고 발표했습니다."},
	{"euc-kr", "백업 설정 안내"},
	{"windows-1251", "Сегодня правительство объявило о новых мерах поддержки общественного транспорта в крупных городах."},
	{"koi8-r", "Сегодня правительство объявило о новых мерах поддержки общественного транспорта в крупных городах."},
	{"windows-1253", "Η κυβέρνηση ανακοίνωσε σήμερα νέα μέτρα για τη στήριξη των δημόσιων συγκοινωνιών στις μεγάλες πόλεις."},
	{"windows-1255", "הממשלה הודיעה היום על צעדים חדשים לתמיכה בתחבורה הציבורית בערים הגדולות."},
	{"windows-1256", "أعلنت الحكومة اليوم عن إجراءات جديدة لدعم النقل العام في المدن الكبرى."},
	{"windows-1250", "Vláda dnes oznámila nová opatření na podporu veřejné dopravy ve velkých městech, která začnou platit příští měsíc."},
	{"windows-1250", "Rząd ogłosił dziś nowe środki wspierające transport publiczny w dużych miastach, które zaczną obowiązywać."},
	{"windows-1252", "La mairie a annoncé aujourd’hui de nouvelles mesures pour développer les transports publics, à l’échelle métropolitaine."},
	{"windows-1252", "Die Regierung kündigte heute neue Maßnahmen zur Förderung des öffentlichen Verkehrs in größeren Städten an."},
	{"windows-1254", "Hükümet bugün büyük şehirlerde toplu taşımayı desteklemek için yeni önlemler açıkladı; değişiklikler gelecek ay başlıyor."},
	{"windows-874", "รัฐบาลประกาศมาตรการใหม่เพื่อสนับสนุนการขนส่งสาธารณะในเมืองใหญ่ตั้งแต่เดือนหน้าเป็นต้นไป"},
	{"windows-1257", "Vyriausybė šiandien paskelbė naujas viešojo transporto rėmimo priemones didžiuosiuose miestuose, kurios įsigalios kitą mėnesį."},
}

// TestGuess: with neither header nor declaration, prose and headings of a few
// characters are read right, alone and inside markup (complaint 82).
func TestGuess(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{"%s", "<html><head><title>Page</title><link href=/a.css></head><body><p class=x>%s</p></body></html>"} {
		for _, p := range prose {
			t.Run(fmt.Sprintf("%s/%.12s", p.encoding, p.text), func(t *testing.T) {
				t.Parallel()
				e, _ := charset.Lookup(p.encoding)
				body, err := e.NewEncoder().String(strings.Replace(shape, "%s", p.text, 1))
				if err != nil {
					t.Fatal(err)
				}
				text, name := Decode([]byte(body), "text/html")
				if !strings.Contains(text, p.text) {
					t.Errorf("read as %s: %s", name, text)
				}
			})
		}
	}
}
