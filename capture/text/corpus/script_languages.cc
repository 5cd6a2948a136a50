// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables are long because every language needs its own words; there is no logic in them.
#include "capture/text/corpus/script_languages.h"

namespace oscar {
namespace {

std::vector<ScriptLanguage> EuropeanLanguages() {
  return {
      {"Français",
       " ",
       {{"sentence",
         {"«t», «s» «v» «p».", "«^s» «v» «p», «t2».", "Il y a «2-90» pages à lire «p»."}},
        {"t", {"Ce matin", "À midi", "Après la fête", "En été", "Dès l’aube", "Hier soir"}},
        {"t2", {"comme toujours", "sans se presser", "malgré la pluie", "pour la première fois"}},
        {"s",
         {"la boulangère", "mon frère aîné", "l’élève", "le garçon de café", "une voisine âgée"}},
        {"v", {"lit le journal", "répare un vélo", "préfère marcher", "a rencontré le maire"}},
        {"p", {"près du fleuve", "à côté du théâtre", "derrière l’église", "chez nous"}}}},
      {"Deutsch",
       " ",
       {{"sentence", {"«t» «v» «s» «p».", "«^s» «v» «p», und zwar nicht zum ersten Mal."}},
        {"t", {"Frühmorgens", "Am Dienstag", "Vor «2-30» Jahren", "Später", "Im März"}},
        {"s",
         {"die Gärtnerin", "der müde Bäcker", "ein Schüler", "meine Großmutter", "Herr Müller"}},
        {"v", {"öffnete", "zählte", "suchte", "verließ", "grüßte"}},
        {"p",
         {"die Tür des Rathauses", "die Straßenbahn", "das kleine Café",
          "den Fluss hinter der Brücke"}}}},
      {"Polski",
       " ",
       {{"sentence", {"«t» «s» «v» «p».", "«^s» «v» «p» już od «2-50» lat."}},
        {"t", {"Dziś rano", "W sobotę", "Późnym wieczorem", "Przed świętami"}},
        {"s", {"sąsiadka", "młody żeglarz", "nauczyciel", "pani Łucja"}},
        {"v", {"czyta książkę", "pije gorącą herbatę", "śpiewa", "czeka"}},
        {"p", {"nad rzeką", "przy starym moście", "w ogrodzie", "za szkołą"}}}},
      {"Türkçe",
       " ",
       {{"sentence", {"«t» «s» «p» «v».", "«^s» «2-40» gündür «p» «v»."}},
        {"t", {"Bu sabah", "Akşamüstü", "Geçen hafta", "Yağmurdan önce"}},
        {"s", {"öğretmen", "yaşlı balıkçı", "küçük kız", "komşumuz"}},
        {"p", {"köprünün altında", "çarşıda", "ağacın gölgesinde", "limanda"}},
        {"v", {"çay içiyor", "şarkı söylüyor", "bekliyor", "kitap okuyor"}}}},
      {"Tiếng Việt",
       " ",
       {{"sentence", {"«t», «s» «v» «p».", "«^s» «v» «p» đã «2-20» năm."}},
        {"t", {"Sáng nay", "Chiều hôm qua", "Mùa hè", "Trước khi trời mưa"}},
        {"s", {"cô giáo", "người bán bánh", "em trai tôi", "ông lão"}},
        {"v", {"đọc sách", "uống trà", "sửa xe đạp", "chờ bạn"}},
        {"p", {"bên bờ sông", "ở chợ", "dưới gốc cây", "gần nhà ga"}}}},
      {"Ελληνικά",
       " ",
       {{"sentence", {"«t» «s» «v» «p».", "«^s» «v» «p» εδώ και «2-40» χρόνια."}},
        {"t", {"Το πρωί", "Χθες το βράδυ", "Την Κυριακή", "Πριν από τη βροχή"}},
        {"s", {"ο δάσκαλος", "η γιαγιά μου", "ένας ψαράς", "το μικρό κορίτσι"}},
        {"v", {"διαβάζει", "πίνει καφέ", "περιμένει", "τραγουδάει σιγά"}},
        {"p", {"στο λιμάνι", "κάτω από το δέντρο", "δίπλα στη θάλασσα", "στην πλατεία"}}}},
      {"Русский",
       " ",
       {{"sentence", {"«t» «s» «v» «p».", "«^s» «v» «p» уже «2-40» лет."}},
        {"t", {"Утром", "Вчера вечером", "В субботу", "Перед дождём", "Каждый день"}},
        {"s", {"учительница", "старый рыбак", "мой брат", "соседка с собакой"}},
        {"v", {"читает газету", "пьёт чай", "чинит часы", "ждёт поезда"}},
        {"p", {"у реки", "на площади", "за школой", "под большим деревом"}}}},
      {"Українська",
       " ",
       {{"sentence", {"«t» «s» «v» «p»."}},
        {"t", {"Сьогодні вранці", "У неділю", "Після дощу", "Щовечора"}},
        {"s", {"вчителька", "мій дід", "їхній сусід", "маленька дівчинка"}},
        {"v", {"читає книжку", "п’є чай", "співає пісню", "лагодить ґанок"}},
        {"p", {"біля річки", "у садку", "на ринку", "під вікном"}}}},
  };
}

std::vector<ScriptLanguage> OtherLanguages() {
  return {
      {"العربية",
       " ",
       {{"sentence", {"«t» «s» «v» «p».", "هل «s» «v» «p»؟ نعم، منذ «2-30» سنة."}},
        {"t", {"في الصباح", "مساء أمس", "يوم الجمعة", "قبل المطر"}},
        {"s", {"المعلم", "الخباز العجوز", "أخي الصغير", "جارنا"}},
        {"v", {"يقرأ الكتاب", "يشرب الشاي", "ينتظر القطار", "يصلح الساعة"}},
        {"p", {"قرب النهر", "في السوق", "تحت الشجرة", "أمام المدرسة"}}}},
      {"עברית",
       " ",
       {{"sentence", {"«t» «s» «v» «p».", "«s» «v» «p» כבר «2-30» שנים."}},
        {"t", {"בבוקר", "אתמול בערב", "ביום שישי", "לפני הגשם"}},
        {"s", {"המורה", "הדייג הזקן", "אחי הקטן", "השכן שלנו"}},
        {"v", {"קורא ספר", "שותה תה", "מחכה לרכבת", "מתקן שעון"}},
        {"p", {"ליד הנהר", "בשוק", "מתחת לעץ", "מול בית הספר"}}}},
      {"हिन्दी",
       " ",
       {{"sentence", {"«t» «s» «p» «v»।", "«s» «2-30» साल से «p» «v»।"}},
        {"t", {"आज सुबह", "कल शाम", "रविवार को", "बारिश से पहले"}},
        {"s", {"अध्यापक", "मेरा भाई", "पड़ोसी", "बूढ़ा मछुआरा"}},
        {"p", {"नदी के किनारे", "बाज़ार में", "पेड़ के नीचे", "स्कूल के सामने"}},
        {"v", {"किताब पढ़ता है", "चाय पीता है", "गाड़ी का इंतज़ार करता है", "घड़ी ठीक करता है"}}}},
      {"ไทย",
       " ",
       {{"sentence", {"«t» «s»«v»«p»", "«s»«v»«p»มา «2-30» ปีแล้ว"}},
        {"t", {"เช้านี้", "เมื่อวานเย็น", "วันอาทิตย์", "ก่อนฝนตก"}},
        {"s", {"ครู", "น้องชายของฉัน", "คนขายขนมปัง", "เพื่อนบ้าน"}},
        {"v", {"อ่านหนังสือ", "ดื่มชา", "รอรถไฟ", "ซ่อมนาฬิกา"}},
        {"p", {"ริมแม่น้ำ", "ที่ตลาด", "ใต้ต้นไม้", "หน้าโรงเรียน"}}}},
      {"中文",
       "",
       {{"sentence",
         {"«t»，«s»在«p»«v»。", "«s»在«p»«v»已经«2-30»年了。", "“你为什么在«p»？”«s»问。"}},
        {"t", {"今天早上", "昨天晚上", "星期日", "下雨以前", "每到春天"}},
        {"s", {"老师", "我的弟弟", "卖面包的人", "邻居", "渔夫"}},
        {"p", {"河边", "市场", "大树下", "学校门口", "旧桥上"}},
        {"v", {"看书", "喝茶", "等火车", "修钟表", "数星星"}}}},
      {"日本語",
       "",
       {{"sentence", {"«t»、«s»は«p»で«v»。", "«s»は«2-30»年前から«p»で«v»。"}},
        {"t", {"今朝", "昨日の夕方", "日曜日に", "雨が降る前に", "春になると"}},
        {"s", {"先生", "わたしの弟", "パン屋さん", "となりの人", "年取った漁師"}},
        {"p", {"川のそば", "市場", "木の下", "学校の前", "古い橋の上"}},
        {"v",
         {"本を読んでいます", "お茶を飲んでいます", "電車を待っています", "時計を直しています"}}}},
      {"한국어",
       " ",
       {{"sentence", {"«t» «s» «p» «v».", "«s» «2-30»년 전부터 «p» «v»."}},
        {"t", {"오늘 아침", "어제 저녁", "일요일에", "비가 오기 전에"}},
        {"s", {"선생님은", "제 동생은", "빵집 주인은", "이웃 사람은"}},
        {"p", {"강가에서", "시장에서", "나무 아래에서", "학교 앞에서"}},
        {"v", {"책을 읽습니다", "차를 마십니다", "기차를 기다립니다", "시계를 고칩니다"}}}},
      {"ქართული",
       " ",
       {{"sentence", {"«t» «s» «p» «v»."}},
        {"t", {"დილით", "გუშინ საღამოს", "კვირას"}},
        {"s", {"მასწავლებელი", "ჩემი ძმა", "მეზობელი"}},
        {"p", {"მდინარესთან", "ბაზარში", "ხის ქვეშ"}},
        {"v", {"კითხულობს", "ჩაის სვამს", "მატარებელს ელოდება"}}}},
  };
}

}  // namespace

std::span<const ScriptLanguage> ScriptLanguages() {
  static const std::vector<ScriptLanguage> languages = [] {
    // Taken in turns, so that a short document still has several scripts.
    const std::vector<ScriptLanguage> groups[] = {EuropeanLanguages(), OtherLanguages()};
    std::vector<ScriptLanguage> all;
    for (size_t i = 0; i < groups[0].size() || i < groups[1].size(); ++i) {
      for (const auto& group : groups) {
        if (i < group.size()) all.push_back(group[i]);
      }
    }
    return all;
  }();
  return languages;
}

}  // namespace oscar
