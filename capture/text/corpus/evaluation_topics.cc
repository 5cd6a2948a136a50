// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Prose topics of the evaluation corpus: they share sentence shapes with those of the calibration
// corpus, but no word list.
#include "capture/text/corpus/prose_topics.h"

namespace oscar {
namespace {

ProseTopic Vineyard() {
  return {
      "A year on the slope",
      {{"name", {"Amalia Duarte", "Henrik Vos", "Lucia", "the elder Baptista"}},
       {"who",
        {"the cooper", "three pickers from the coast", "the niece of the owner", "Ferran",
         "the man who drove the tractor", "a chemist from the cooperative", "the neighbours"}},
       {"place",
        {"the upper terraces", "the cellar", "the chapel by the spring", "the pressing room",
         "the shed with the copper kettles", "the road to the mill"}},
       {"thing",
        {"the new plantation", "the old press", "the cistern", "the south wall",
         "the barrel with the cracked stave", "the harvest", "the soil under the olive trees"}},
       {"things", {"baskets", "corks", "grafts", "vats", "pruning knives"}},
       {"state",
        {"too dry", "nearly ripe", "attacked by mildew", "worth more than the house",
         "covered with nets", "sour this year", "as good as it ever was"}},
       {"did",
        {"tasted the juice", "burned the cuttings", "walked the rows with a lantern",
         "measured the sugar", "tied up the young shoots", "scrubbed the vats"}},
       {"done", {"forgotten the sulphur", "bought the field below", "grafted the first row"}},
       {"task",
        {"prune a vine", "light smudge pots against the frost", "repair a terrace without mortar",
         "rack the wine", "drive away the starlings", "load the cart before the heat"}},
       {"remark",
        {"a vine remembers every cut", "rain in September is a thief",
         "nobody gets rich above the church", "taste it again in ten years",
         "the stones keep the warmth for us"}},
       {"fact",
        {"the roots of an old vine go down fifteen metres, past three kinds of rock.",
         "yeast stops working when the alcohol it has made becomes too strong for it.",
         "frost flows downhill like water, so the lowest rows freeze first.",
         "a dry stone wall moves with the ground and therefore outlives one with mortar.",
         "every seventh row was left for the walnut trees, whose shade keeps the soil moist."}}}};
}

ProseTopic NightTrain() {
  return {
      "The night train through the passes",
      {{"name", {"Inspector Halloran", "Zofia Maj", "Benedikt", "a Mrs. Okonkwo"}},
       {"who",
        {"the conductor", "a violinist without a violin", "the couple in berth nine",
         "the cook in the dining car", "a soldier on leave", "the driver of the second engine"}},
       {"place",
        {"the corridor", "the junction at the border", "the luggage van", "the summit tunnel",
         "the platform with the broken clock", "the restaurant of the station"}},
       {"thing",
        {"the sleeping car", "the brake on the third wagon", "the signal before the viaduct",
         "the stove", "the parcel with no address", "the connection to the coast",
         "the timetable"}},
       {"things", {"suitcases", "tickets", "blankets", "newspapers", "samovars"}},
       {"state",
        {"twenty minutes behind", "frozen shut", "much too hot", "coupled the wrong way round",
         "missing", "guarded by two men", "lit by a single bulb"}},
       {"did",
        {"looked out of the window", "punched the tickets twice", "slept through the customs",
         "shared an orange with strangers", "walked the length of the train",
         "listened to the wheels"}},
       {"done", {"pulled the emergency brake", "missed the last tunnel", "changed compartments"}},
       {"task",
        {"find an empty compartment", "thaw the points with torches", "wake the passengers",
         "send a telegram ahead", "hang the lanterns at the rear", "translate the announcement"}},
       {"remark",
        {"one never sees the same passenger twice", "the mountains do not read timetables",
         "keep your passport under the pillow", "we stop here for the water, not for you",
         "in the tunnel all faces look alike"}},
       {"fact",
        {"on a slope of one in forty a second engine pushes from behind.",
         "the gauge changes at the border, so every carriage is lifted onto other wheels.",
         "snow sheds were built of larch because it lasts a century without paint.",
         "two trains may not be in the summit tunnel at once, for the sake of the smoke.",
         "the clocks of the two railways differed by eleven minutes until the treaty."}}}};
}

ProseTopic Glassworks() {
  return {
      "How the glassworks changed hands",
      {{"name", {"Josefine Kral", "Anselm", "Widow Marchetti", "young Teodor"}},
       {"who",
        {"the master blower", "the accountant", "four apprentices", "the engraver",
         "the woman who mixed the batch", "the merchant from the capital", "the night stoker"}},
       {"place",
        {"the furnace hall", "the cutting shop", "the sand store", "the showroom",
         "the annealing ovens", "the courtyard with the crates"}},
       {"thing",
        {"the great pot", "the order for the theatre", "the recipe for ruby glass",
         "the draught in the chimney", "the mould", "the chandelier",
         "the last gather of the day"}},
       {"things", {"goblets", "moulds", "blowpipes", "sacks of potash", "lamp shades"}},
       {"state",
        {"full of seeds and cords", "clear as water", "cracked at the rim", "paid for in advance",
         "the colour of weak tea", "three days from ready", "known in five countries"}},
       {"did",
        {"opened the damper", "broke the failed pieces into the bin", "signed the lease",
         "turned the pipe without a pause", "weighed the manganese", "packed until midnight"}},
       {"done", {"spoiled a whole melt", "drawn the design", "walked out over the wages"}},
       {"task",
        {"blow a cylinder", "match an old colour", "rebuild the arch", "polish with pumice",
         "keep the fire through the holiday", "teach the left hand"}},
       {"remark",
        {"glass shows every hesitation", "cool it slowly or not at all",
         "the furnace eats first and we eat after", "a bubble is a signature",
         "nobody orders plain tumblers any more"}},
       {"fact",
        {"a little manganese hides the green that iron gives, until the sun turns it violet.",
         "a pot lasts about forty melts and then leaks without warning.",
         "thick glass must cool for days, because the outside sets before the inside.",
         "gold in the batch shows no colour until the glass is heated a second time.",
         "window panes were once cut from cylinders that had been slit and flattened."}}}};
}

ProseTopic Survey() {
  return {"The survey of the northern islands",
          {{"name", {"Captain Ruth Aldous", "Ignatius", "Sigrun Dahl", "the cadet Ombe"}},
           {"who",
            {"the cartographer", "the ship's doctor", "a guide from the settlement",
             "the botanist and her assistant", "the stokers", "the keeper of the chronometers"}},
           {"place",
            {"the outer skerries", "the camp on the isthmus", "the bird cliff", "the chart room",
             "the mouth of the glacier river", "the cairn on the highest point"}},
           {"thing",
            {"the base line", "the theodolite", "the second launch", "the sketch of the strait",
             "the cairn", "the compass near the black rocks", "the supply of lamp oil"}},
           {"things", {"soundings", "specimens", "tents", "angles", "puffins"}},
           {"state",
            {"wrong by half a degree", "buried under driftwood", "not on any earlier map",
             "wrapped in sealskin", "checked by two observers", "lost between the islands"}},
           {"did",
            {"levelled the instrument", "pressed the flowers", "rowed against the current",
             "named a rock after the dog", "copied the angles in ink", "waited for the stars"}},
           {"done", {"dropped the lead line", "refused to land", "drawn the coast from memory"}},
           {"task",
            {"measure a shadow at noon", "cross the sound between tides", "find fresh water",
             "carry the chain over the marsh", "count the nests", "settle a quarrel about a name"}},
           {"remark",
            {"a map is a promise to strangers", "trust the chronometer and nobody else",
             "these islands have more names than houses", "the fog was here first",
             "measure twice and sail once"}},
           {"fact",
            {"three angles of a large triangle on the earth add up to more than half a turn.",
             "iron in the rock pulled the needle eleven degrees to the west.",
             "a chronometer that loses a second a day puts a ship four miles out in a fortnight.",
             "the tide in the sound runs for seven hours one way and five the other.",
             "the moss on the cairn grows a millimetre in a year, which dates the first visit."}}}};
}

}  // namespace

std::span<const ProseTopic> EvaluationTopics() {
  static const std::vector<ProseTopic> topics = {Vineyard(), NightTrain(), Glassworks(), Survey()};
  return topics;
}

}  // namespace oscar
