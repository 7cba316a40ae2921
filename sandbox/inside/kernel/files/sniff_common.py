"""Everyday characters of the scripts whose code pages overlap: what tells a right reading from a wrong one.

Nearly any bytes are valid GBK, Big5 and EUC-KR at once. The right reading consists of characters that people
write all the time, the wrong ones of rarities. These are the commonest of running text, and the words that
tables are full of: cities, column names, units.
"""

SIMPLIFIED = frozenset(
    "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事"
    "只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向"
    "情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市体别"
    "处总才场师书比住员九性通目华报立马命张活难神数件安表原车白应路期常提感金何更反合放做系计或司利受光王果界及今京务制解各任至清物台记边共"
    "风接许八特直服林题建南度统色字请交爱认算论百义科元社术结六功指思非流每青管连远资队带花快条院变联言权往展该领传近留红治决周保达办运武半"
    "七必城父强步完深区即求品转量空众技轻程告江语英基满式李息写识极令黄德收钱未持取设始双历越史商千片容研找友站广改议形委早房音火际则首单据"
    "导影失网香专石校读志观争究包组造落视济客集销售额类姓龄省县价格址编号备注状态成本润户订圳州杭汉庆津苏份序率占温湿支付库存供缺买卖店款费"
)
TRADITIONAL = frozenset(
    "的一是不了人我在有他這為之大來以個中上們到說國和地也子時道出而要於就下得可你年生自會那後能對著事其里所去行過家十用發天如然作方成者多日都"
    "三小軍二無同麼經法當起與好看學進種將還分此心前面又定見只主沒公從臺灣北高雄中南市縣新桃園竹銷售產品類別部門姓名性別期齡金額數量價格址編"
    "號備註狀態收入本客戶訂單總計香港九龍東西區路街電話郵件時間日月店員工廠商車價費元件台彰化嘉義屏宜蘭花蓮基隆雲林苗栗"
)
KOREAN = frozenset(
    "이다는에의을가로하고지사기도한어그시아나서있은를자리대으인해수정전일부라제상만과여들장스원주구보게성동트면신었조공유문비요국세용선개방연관생마"
    "무진경안위당산소치미드행업호실물오토임타모적니반네교화천월우레회직간거크영계초결심차내분건양법금단명입식음점외체러품터울광강충청매출액량날"
    "짜름별격역합총울산평균비율코드번등록점포판매"
)
JAPANESE = frozenset("日本東京都大阪名前年月数売上合計人口円県市区町村金額商品店舗別性年齢番号住所時間備考費用平均")

BY_PAGE = {
    "gb18030": SIMPLIFIED,
    "big5": TRADITIONAL,
    "euc_kr": KOREAN,
    "shift_jis": JAPANESE,
    "euc_jp": JAPANESE,
}
