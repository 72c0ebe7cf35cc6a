"""How often short texts are mistaken for English or for another language, and how long detection takes per text.

Foreign sentences are below. English texts come from the development data, which is read in place (`../shared/data`, or
`PCS_SHARED_DATA`). Run it with `python benchmarks/language.py`; `lingua-language-detector` is measured too if it is
installed.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pcs_annotator.relations.language import language_of, may_be_english, why_not_prose

DATA = Path(os.environ.get("PCS_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))

FOREIGN = {
    "de": """Regierung beschließt neues Rentenpaket
Stau auf der A8 nach schwerem Unfall
Hab heute richtig gute Laune!
Bayern gewinnt das Spitzenspiel gegen Dortmund
Warum gibt es hier kein vernünftiges Internet?
Das Essen war kalt und der Kellner unfreundlich.
Polizei sucht Zeugen nach Überfall in Köln
Wer kommt morgen mit ins Kino?
Bundestag streitet über Klimaschutz
ganz ehrlich, der neue Film ist langweilig""",
    "es": """El presidente viaja a Bruselas para la cumbre
Tres heridos tras choque de autobuses en Lima
qué ganas de que llegue el viernes
Sube el precio de la gasolina otra vez
Me encanta esta canción, la escucho todo el día
Congreso aprueba reforma laboral
Nadie contesta el teléfono en esa oficina
Real Madrid golea en casa
No vuelvo a comprar en esa tienda jamás
Buscan a niño desaparecido en Sevilla""",
    "fr": """Le gouvernement présente son plan pour l'hôpital
Grève des trains : fortes perturbations lundi
trop contente de mes vacances !
Macron reçoit les syndicats à Paris
Je n'ai jamais aussi mal mangé de ma vie
Incendie dans une usine près de Lyon
Quelqu'un sait où est passé mon chargeur ?
La justice ouvre une enquête sur le maire
ce film est vraiment nul
Hausse des prix de l'électricité en février""",
    "pt": """Governo anuncia corte de impostos
Chuva forte deixa desabrigados no Rio
adorei o show de ontem à noite
Polícia prende suspeito de roubo em Recife
Alguém sabe que horas começa o jogo?
Preço da carne sobe pelo terceiro mês
Esse aplicativo trava o tempo todo
Presidente viaja para Lisboa amanhã
Não aguento mais esse calor
Time perde de novo e técnico é demitido""",
    "it": """Il governo approva la nuova legge sul lavoro
Sciopero dei treni venerdì in tutta Italia
che bella giornata oggi al mare
Juventus battuta in casa dal Napoli
Qualcuno sa dove posso parcheggiare in centro?
Aumentano i prezzi della benzina
Mai più in quel ristorante
Incendio in una fabbrica vicino a Torino
Arrestato il sindaco per corruzione
questo telefono si scarica subito""",
    "nl": """Kabinet trekt geld uit voor scholen
Lange files door ongeluk op de A2
wat een heerlijke dag vandaag
Ajax verliest opnieuw van PSV
Niemand weet waar mijn fiets gebleven is
Politie houdt verdachte aan in Utrecht
Dat boek heb ik in een dag uitgelezen
Huizenprijzen stijgen weer sneller
Waarom rijdt er nooit een trein op tijd?
de nieuwe app werkt totaal niet""",
    "sv": """Regeringen vill höja skatten på flygresor
Stor brand i lagerlokal utanför Malmö
äntligen fredag och semester
Ingen svarar när man ringer kundtjänst
Polisen söker vittnen efter rånet
Priserna på mat fortsätter stiga
Hur kan någon tycka om den här filmen?
Sverige vann finalen mot Finland
Jag har glömt mina nycklar igen
tåget är försenat som vanligt""",
    "pl": """Rząd zapowiada obniżkę podatków
Wypadek na autostradzie, są ranni
wreszcie weekend i można odpocząć
Policja zatrzymała podejrzanego w Krakowie
Czy ktoś widział mój telefon?
Ceny mieszkań znowu rosną
Ta aplikacja ciągle się zawiesza
Legia przegrała u siebie z Lechem
Najlepsza pizza w mieście, polecam wszystkim
Prezydent podpisał ustawę o edukacji""",
    "tr": """Hükümet yeni ekonomi paketini açıkladı
İstanbul'da trafik kazası: üç yaralı
bugün hava gerçekten harika
Galatasaray deplasmanda kazandı
Telefonum yine bozuldu, inanamıyorum
Benzine zam geldi
Kimse mesajlarıma cevap vermiyor
Bu filmi herkese tavsiye ederim
Polis şüpheliyi gözaltına aldı
yarın sabah erken kalkmam lazım""",
    "zh": """政府宣布新的减税计划
今天天气真好
这家餐厅的服务很差
警方正在寻找目击者
股市连续三天下跌
我再也不会买这个牌子了
总统下周访问欧洲
手机又坏了怎么办""",
    "ru": """Правительство повысит пенсии
сегодня отличная погода
Полиция ищет свидетелей аварии
Никто не отвечает на звонки
Цены на бензин снова выросли
Этот фильм мне совсем не понравился
Сборная проиграла в финале
Кто идёт завтра в кино?""",
    "ar": """الحكومة تعلن خطة جديدة للضرائب
الطقس جميل اليوم
الشرطة تبحث عن شهود
ارتفاع أسعار الوقود مرة أخرى
هذا المطعم سيء جدا
فاز الفريق بالمباراة النهائية
لا أحد يجيب على الهاتف
الرئيس يزور باريس غدا""",
}
# Languages that are not among those compared, most of them close to one that is.
FURTHER = """El govern aprova el nou pressupost
No sé què farem demà al matí
La policia busca testimonis a Girona
Die regering keur die nuwe wet goed
Ek weet nie wat om te doen nie
Die kos was koud en die diens was sleg
Уряд ухвалив новий закон
Я не знаю, що робити завтра
Цей фільм дуже нудний
Правителството прие нов закон
Не знам какво да правя утре
Влада је усвојила нови закон
Не знам шта да радим сутра
دولت قانون جدیدی تصویب کرد
این فیلم خیلی خسته کننده بود
حکومت نے نیا قانون منظور کیا
یہ فلم بہت بورنگ تھی
सरकारने नवीन कायदा मंजूर केला
हा चित्रपट खूप कंटाळवाणा होता
सरकारले नयाँ कानुन पारित गर्‍यो
सरकार ने नया कानून मंजूर किया
यह फिल्म बहुत उबाऊ थी
O goberno aproba a nova lei
Non sei que facer mañá
D'Regierung huet dat neit Gesetz ugeholl
Regjeringen vedtar den nye loven
Jeg vet ikke hva jeg skal gjøre i morgen
Vláda schválila nový zákon
Neviem, čo mám zajtra robiť
Vlada je usvojila novi zakon
Ne znam što da radim sutra
Serikali imepitisha sheria mpya
Sijui la kufanya kesho
Qeveria miraton ligjin e ri
La registaro aprobis la novan leĝon""".splitlines()
# Mostly English, with a foreign name, title or greeting in it: should count as English.
MIXED = """Emmanuel Macron defends pension reform at Élysée Palace
Bolsonaro supporters storm congress in Brasília
La La Land wins best picture, then loses it
Ich bin ein Berliner: what Kennedy really said
Ariana Grande cancels São Paulo show
just had the best tacos al pastor, muchas gracias Maria
El Chapo found guilty in New York court
Volkswagen recalls 200,000 Golf and Passat cars
Borussia Dortmund sign teenager from Ajax
that café on Rue de Rivoli is overpriced tbh
Juan Carlos leaves Spain amid scandal
Real Madrid beat Bayern Munich in Champions League semi-final
Narendra Modi wins second term
The word Schadenfreude has no English match""".splitlines()
NO_PROSE = """https://example.org/2019/05/04/a-long-headline-in-a-link
const n = items.map((x) => x.id).filter(Boolean);
SELECT id, title FROM news WHERE year = 2016 ORDER BY id;
pip install --upgrade requests
<a href="/home" class="nav">Home</a>
for (int i = 0; i < n; i++) { sum += v[i]; }
{"id": 7, "text": "hello", "label": null}
git push origin main --force
@user @other https://t.co/xyz
df.groupby("label").agg(mean=("score", "mean"))""".splitlines()

Detector = Callable[[str], str]


def english_sets() -> dict[str, list[str]]:
    sets: dict[str, list[str]] = {}
    for name in ("texts/tweets_sentiment", "texts/fakenews_titles", "texts/multiclass_sentiment", "babe/items"):
        with (DATA / f"{name}.csv").open(encoding="utf-8", errors="replace") as file:
            sets[name] = [row["text"] for row in csv.DictReader(file)]
    sentences = json.loads((DATA / "texts" / "sentences.json").read_text(encoding="utf-8"))
    for kind in sorted({one["src"] for one in sentences}):
        sets[f"texts/sentences {kind}"] = [one["text"] for one in sentences if one["src"] == kind]
    return sets


def detectors() -> dict[str, Detector]:
    import py3langid

    found: dict[str, Detector] = {
        "ours": language_of,
        "py3langid as it is": lambda text: str(py3langid.classify(text)[0]),
    }
    try:
        from lingua import LanguageDetectorBuilder
    except ImportError:
        return found
    detector = LanguageDetectorBuilder.from_all_languages().with_preloaded_language_models().build()

    def by_lingua(text: str) -> str:
        language = detector.detect_language_of(text)
        return "" if language is None else str(language.iso_code_639_1.name).lower()

    return found | {"lingua": by_lingua}


def share(wrong: int, texts: Sequence[str]) -> str:
    return f"{wrong:4} of {len(texts):4} ({wrong / len(texts):6.1%})"


def main() -> None:
    known = [(language, text) for language, texts in FOREIGN.items() for text in texts.splitlines()]
    foreign = [text for _, text in known]
    english = (english_sets() if DATA.is_dir() else {}) | {"foreign names in English": MIXED}
    if not DATA.is_dir():
        print(f"no development data at {DATA}: set PCS_SHARED_DATA to its folder")
    for name, detect in detectors().items():
        print(name)
        for what, texts in english.items():
            # Empty means that the text is too short, which is not an error.
            wrong = sum(detect(text) not in ("en", "") for text in texts)
            print(f"  {what:30} called not English {share(wrong, texts)}")
        print(f"  {'foreign':30} called English     {share(sum(detect(text) == 'en' for text in foreign), foreign)}")
        other = sum(detect(text) != language for language, text in known)
        print(f"  {'foreign':30} another language   {share(other, foreign)}")
        sample = [f"{text} again" for texts in english.values() for text in texts[:200]]
        start = time.process_time()
        for text in sample:
            detect(text)
        print(f"  {(time.process_time() - start) / len(sample) * 1e6:.0f} µs per text")
    for what, texts in {"foreign": foreign, "further languages": FURTHER}.items():
        print(f"{what:32} taken for English   {share(sum(map(may_be_english, texts)), texts)}")
    for what, texts in english.items():
        lost = sum(not may_be_english(text) for text in texts)
        print(f"{what:32} not taken for English {share(lost, texts)}")
    prose = sum(not why_not_prose(text) for text in NO_PROSE)
    print(f"code and links that rules would touch: {share(prose, NO_PROSE)}")


if __name__ == "__main__":
    main()
