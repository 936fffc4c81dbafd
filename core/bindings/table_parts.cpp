// A binned table taken apart into arrays, and put together again.
#include "table/table_parts.hpp"

#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"

namespace polyleaf {
namespace {

// The numbers of each feature, one feature after the other, and where each begins.
template <class T, class Of>
void add_lists(nb::dict& out, const char* begin_name, const char* name, std::size_t count, const Of& of) {
  std::vector<std::int64_t> begin = {0};
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto value : of(i)) all.push_back(static_cast<T>(value));
    begin.push_back(static_cast<std::int64_t>(all.size()));
  }
  out[begin_name] = to_numpy(std::move(begin));
  out[name] = to_numpy(std::move(all));
}

// The codes of a tile, in place.
template <class Code>
nb::object code_view(const FeatureTile& tile, std::size_t n_rows, nb::handle owner) {
  const Code* codes = reinterpret_cast<const Code*>(tile.codes.data());
  return nb::cast(nb::ndarray<nb::numpy, const Code, nb::ndim<2>>(codes, {n_rows, tile.n_features()}, owner));
}

nb::dict take_apart(nb::handle self) {
  const auto& b = nb::cast<const BinnedMatrix&>(self);
  expect(b.is_whole(), "the table does not have all codes");
  nb::dict out;
  out["n_rows"] = b.n_rows;
  add_lists<double>(out, "cut_begin", "cuts", b.features.size(), [&](std::size_t f) { return b.features[f].cuts; });
  add_lists<std::uint32_t>(out, "category_begin", "categories", b.features.size(),
                           [&](std::size_t f) { return b.features[f].categories; });
  add_lists<std::int32_t>(out, "tile_begin", "tile_feature", b.tiles.size(),
                          [&](std::size_t t) { return b.tiles[t].features; });
  std::vector<std::uint8_t> has_missing, categorical, skips;
  std::vector<std::uint32_t> frequent;
  for (const FeatureBins& bins : b.features) {
    has_missing.push_back(bins.has_missing ? 1 : 0);
    categorical.push_back(bins.categorical ? 1 : 0);
  }
  nb::list codes;
  for (const FeatureTile& tile : b.tiles) {
    skips.push_back(tile.skips_frequent ? 1 : 0);
    for (std::size_t i = 0; i < tile.n_features(); ++i) frequent.push_back(tile.frequent_slot[i] - tile.slot_begin[i]);
    codes.append(tile.wide ? code_view<std::uint16_t>(tile, b.n_rows, self)
                           : code_view<std::uint8_t>(tile, b.n_rows, self));
  }
  out["has_missing"] = to_numpy(std::move(has_missing));
  out["categorical"] = to_numpy(std::move(categorical));
  out["tile_skips"] = to_numpy(std::move(skips));
  out["tile_frequent"] = to_numpy(std::move(frequent));
  out["codes"] = codes;
  return out;
}

// An array of a dict.
template <class T>
Vector<T> part_of(const nb::dict& parts, const char* name) {
  Vector<T> out;
  if (!parts.contains(name) || !nb::try_cast(parts[name], out, false))
    throw std::invalid_argument(std::string(name) + ": missing, or no array of this kind");
  return out;
}

// Where lists begin and end in an array of so many numbers.
const std::int64_t* checked_begin(const Vector<std::int64_t>& begin, std::size_t count, std::size_t size,
                                  const char* name) {
  bool sound =
      begin.shape(0) == count + 1 && begin.data()[0] == 0 && begin.data()[count] == static_cast<std::int64_t>(size);
  for (std::size_t i = 0; sound && i < count; ++i) sound = begin.data()[i] <= begin.data()[i + 1];
  if (!sound) throw std::invalid_argument(std::string(name) + " must ascend from 0 to what it divides");
  return begin.data();
}

std::vector<ColumnCuts> columns_of_parts(const nb::dict& parts) {
  const auto has_missing = part_of<std::uint8_t>(parts, "has_missing");
  const auto categorical = part_of<std::uint8_t>(parts, "categorical");
  const auto cuts = part_of<double>(parts, "cuts");
  const auto categories = part_of<std::uint32_t>(parts, "categories");
  const auto cut_begins = part_of<std::int64_t>(parts, "cut_begin");
  const auto category_begins = part_of<std::int64_t>(parts, "category_begin");
  const std::size_t m = has_missing.shape(0);
  expect(categorical.shape(0) == m, "has_missing and categorical: one each per feature");
  const std::int64_t* cut_begin = checked_begin(cut_begins, m, cuts.shape(0), "cut_begin");
  const std::int64_t* category_begin = checked_begin(category_begins, m, categories.shape(0), "category_begin");
  std::vector<ColumnCuts> columns(m);
  for (std::size_t f = 0; f < m; ++f) {
    columns[f].cuts.assign(cuts.data() + cut_begin[f], cuts.data() + cut_begin[f + 1]);
    columns[f].categories.assign(categories.data() + category_begin[f], categories.data() + category_begin[f + 1]);
    columns[f].has_missing = has_missing.data()[f] != 0;
    columns[f].categorical = categorical.data()[f] != 0;
  }
  return columns;
}

BinnedMatrix table_from_parts(const nb::dict& parts, int n_threads) {
  std::size_t n_rows = 0;
  nb::list codes;
  expect(parts.contains("n_rows") && nb::try_cast(parts["n_rows"], n_rows), "n_rows: a number is needed");
  expect(parts.contains("codes") && nb::try_cast(parts["codes"], codes), "codes: a list is needed");
  std::vector<ColumnCuts> columns = columns_of_parts(parts);
  const auto features = part_of<std::int32_t>(parts, "tile_feature");
  const auto frequent = part_of<std::uint32_t>(parts, "tile_frequent");
  const auto skips = part_of<std::uint8_t>(parts, "tile_skips");
  const auto begins = part_of<std::int64_t>(parts, "tile_begin");
  const std::size_t n_tiles = codes.size();
  expect(skips.shape(0) == n_tiles, "tile_skips and codes: one each per tile");
  expect(frequent.shape(0) == features.shape(0), "tile_frequent: one per feature");
  const std::int64_t* begin = checked_begin(begins, n_tiles, features.shape(0), "tile_begin");
  std::vector<TilePart> tiles(n_tiles);
  for (std::size_t t = 0; t < n_tiles; ++t) {
    TilePart& tile = tiles[t];
    tile.features.assign(features.data() + begin[t], features.data() + begin[t + 1]);
    tile.frequent_code.assign(frequent.data() + begin[t], frequent.data() + begin[t + 1]);
    tile.skips_frequent = skips.data()[t] != 0;
    Matrix<std::uint8_t> narrow;
    Matrix<std::uint16_t> wide;
    tile.wide = !nb::try_cast(codes[t], narrow, false);
    expect(!tile.wide || nb::try_cast(codes[t], wide, false), "codes: matrices of uint8 or uint16, row by row");
    tile.codes = tile.wide ? static_cast<const void*>(wide.data()) : narrow.data();
    tile.n_rows = tile.wide ? wide.shape(0) : narrow.shape(0);
    tile.n_columns = tile.wide ? wide.shape(1) : narrow.shape(1);
  }
  nb::gil_scoped_release release;  // the list keeps the codes
  return put_together(n_rows, std::move(columns), tiles, n_threads);
}

}  // namespace

void bind_table_parts(nb::module_& m) {
  m.def("parts_of_table", &take_apart, "table"_a,
        "Plain arrays by their names. The codes are those of the table itself, not copies: once `join_columns` has "
        "emptied it, they must not be read.");
  m.def("table_from_parts", &table_from_parts, "parts"_a, "n_threads"_a,
        "The table that `parts_of_table` took apart; all is checked.");
}

}  // namespace polyleaf
