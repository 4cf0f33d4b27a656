// Tests the bytes of each fact in each of its versions. Journals hold them for ever: a line here may be
// added, but never changed.

#include "model/facts.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}
std::string unhex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  return bytes;
}

TEST(FactBytes, StayTheSame) {
  struct {
    fact x;
    std::string version_1;
    /// the bytes in older journals, which lack the fields that were added at the end
    std::vector<std::string> before;
  } all[] = {
    {experiment_created{time_point{5us}, {7}, value{{"a", 1}}, "n", "o", "c", "s", "k"},
     "93b26578706572696d656e745f63726561746564019c0507c40481a16101a16ea16fa163a173a16b0001c2a0",
     {"93b26578706572696d656e745f63726561746564019a0507c40481a16101a16ea16fa163a173a16b0001",
      "93b26578706572696d656e745f6372656174656401980507c40481a16101a16ea16fa163a173a16b",
      "93b26578706572696d656e745f6372656174656401990507c40481a16101a16ea16fa163a173a16b00"}},
    {agent_joined{time_point{5us}, "a1", "id", 4, "h"},
     "93ac6167656e745f6a6f696e6564019605a26131a2696404a168a0",
     {"93ac6167656e745f6a6f696e6564019505a26131a2696404a168"}},
    {agent_changed{time_point{5us}, "a1", true, {0, 1}, "eve"},
     "93ad6167656e745f6368616e676564019705a26131c3920001a3657665c290",
     {"93ad6167656e745f6368616e676564019505a26131c3920001a3657665"}},
    {agent_left{time_point{5us}, "a1", "id", "eve"}, "93aa6167656e745f6c656674019405a26131a26964a3657665"},
    {experiment_changed{time_point{5us}, experiment_state::paused, "asked"},
     "93b26578706572696d656e745f6368616e67656401940501a561736b6564a0",
     {"93b26578706572696d656e745f6368616e67656401930501a561736b6564"}},
    {search_stepped{time_point{5us},
                    search_input::validated,
                    {3},
                    9,
                    4,
                    value{{"loss", 0.5}},
                    0,
                    {{{4}, "4", value{{"n", 2}}, 17, ""}},
                    {{{3}, "worse", 0, 1, 0.5, 0.25}},
                    false,
                    false,
                    true,
                    0.5},
     "93ae7365617263685f7374657070656401dc00130501030904c40b81a46c6f7373ca3f00000000919604a134c40481a16e0211a"
     "000919603a5776f7273650001cb3fe0000000000000cb3fd0000000000000c2c2c3cb3fe0000000000000909090a00000",
     {"93ae7365617263685f7374657070656401dc00120501030904c40b81a46c6f7373ca3f00000000919604a134c40481a16e0211"
      "a"
      "000919603a5776f7273650001cb3fe0000000000000cb3fd0000000000000c2c2c3cb3fe0000000000000909090a000"}},
    {trial_activated{time_point{5us}}, "93af747269616c5f616374697661746564019105"},
    {trial_paused{time_point{5us}}, "93ac747269616c5f706175736564019105"},
    {trial_stop_ordered{time_point{5us}, trial_state::canceled, true, "cancel"},
     "93b2747269616c5f73746f705f6f72646572656401950505c3a663616e63656ca0",
     {"93b2747269616c5f73746f705f6f72646572656401940505c3a663616e63656c"}},
    {trial_perturbed{time_point{5us}, 2, {3}, "u", 40, value{{"n", 1}}},
     "93af747269616c5f7065727475726265640196050203a17528c40481a16e01"},
    {run_started{time_point{5us}, {2}, "u", 40}, "93ab72756e5f7374617274656401940502a17528"},
    {checkpoint_recorded{time_point{5us}, {2}, {"u", 40, {{"a/b", 3}}, value{{"m", 1}}, "/p"}},
     "93b3636865636b706f696e745f7265636f726465640193050296a1752881a3612f6203c40481a16d01a22f7092a0a0",
     {"93b3636865636b706f696e745f7265636f726465640193050295a1752881a3612f6203c40481a16d01a22f70"}},
    {run_ended{time_point{5us}, {2}, end::failed, 1, 0, time_point{7us}, "exit code 1"},
     "93a972756e5f656e6465640197050201010007ab6578697420636f64652031"},
    {trial_ended{time_point{5us}, trial_state::error, "gave up", 0},
     "93ab747269616c5f656e64656401940506a76761766520757000"},
    {allocation_placed{time_point{5us}, {{"a1", {0, 1}}}},
     "93b1616c6c6f636174696f6e5f706c616365640195059192a26131920001a0c2a0",
     {"93b1616c6c6f636174696f6e5f706c616365640192059192a26131920001",
      "93b1616c6c6f636174696f6e5f706c616365640194059192a26131920001a0c2"}},
    {allocation_closed{time_point{5us}, end::lost, -1, "agent lost"},
     "93b1616c6c6f636174696f6e5f636c6f73656401970502ffaa6167656e74206c6f7374c2c2c2",
     {"93b1616c6c6f636174696f6e5f636c6f73656401940502ffaa6167656e74206c6f7374",
      "93b1616c6c6f636174696f6e5f636c6f73656401950502ffaa6167656e74206c6f7374c2",
      "93b1616c6c6f636174696f6e5f636c6f73656401960502ffaa6167656e74206c6f7374c2c2"}},
    {checkpoint_changed{time_point{5us}, "u", {{"a", 3}}},
     "93b2636865636b706f696e745f6368616e676564019405a17581a16103a0",
     {"93b2636865636b706f696e745f6368616e676564019305a17581a16103"}},
    {trial_metadata_set{time_point{5us}, value{{"n", 1}}},
     "93b2747269616c5f6d657461646174615f736574019305c40481a16e01a0",
     {"93b2747269616c5f6d657461646174615f736574019205c40481a16e01"}},
    {trial_progressed{time_point{5us}, 0.5}, "93b0747269616c5f70726f67726573736564019205cb3fe0000000000000"},
    {allocation_ready{time_point{5us}}, "93b0616c6c6f636174696f6e5f7265616479019105"},
    {allocation_yielded{time_point{5us}, true}, "93b2616c6c6f636174696f6e5f7969656c646564019205c3"},
    {allocation_gave_up{time_point{5us}}, "93b2616c6c6f636174696f6e5f676176655f7570019105"},
    {experiment_swept{time_point{5us}, {7}}, "93b06578706572696d656e745f737765707401920507"},
    {part_made_daemon{time_point{5us}, "a1"}, "93b0706172745f6d6164655f6461656d6f6e019205a26131"},
    {member_lost{time_point{5us}, "a1", 1, "signal 9"},
     "93ab6d656d6265725f6c6f7374019405a2613101a87369676e616c2039"},
    {allocation_resized{time_point{5us}, 1, {0, 2}, 2, true, "a1 lost"},
     "93b2616c6c6f636174696f6e5f726573697a65640196050192000202c3a76131206c6f7374"},
    {user_changed{time_point{5us}, "ada", {3}, "eve", "Eve", true, false, "h1", 2, {{7, 8, "u", "g"}}},
     "93ac757365725f6368616e676564019c05a361646103a3657665a3457665c3c2a268310291940708a175a167c290",
     {"93ac757365725f6368616e676564019b05a361646103a3657665a3457665c3c2a268310291940708a175a167c2",
      "93ac757365725f6368616e676564019a05a361646103a3657665a3457665c3c2a268310291940708a175a167"}},
    {token_changed{time_point{5us}, "ada", {3}, "id", "nightly", time_point{7us}, true},
     "93ad746f6b656e5f6368616e676564019a05a361646103a26964a76e696768746c7907c300a000",
     {"93ad746f6b656e5f6368616e676564019705a361646103a26964a76e696768746c7907c3"}},
    {configuration_changed{time_point{5us}, "ada", 2, value{{"n", 1}}},
     "93b5636f6e66696775726174696f6e5f6368616e676564019405a361646102c40481a16e01"},
    {setting_changed{time_point{5us}, "ada", "trace.max", 7},
     "93af73657474696e675f6368616e676564019405a3616461a974726163652e6d6178c40107"},
    {workspace_changed{time_point{5us},
                       "ada",
                       {2},
                       "v",
                       "eve",
                       true,
                       false,
                       {"bob"},
                       {{7, 8, "u", "g"}},
                       value{{"a", 1}},
                       "p",
                       "q"},
     "93b1776f726b73706163655f6368616e676564019e05a361646102a176a3657665c3c291a3626f6291940708a175a167c40481a"
     "16101a170a17100a0",
     {"93b1776f726b73706163655f6368616e676564019c05a361646102a176a3657665c3c291a3626f6291940708a175a167c40481"
      "a16101a170a171"}},
    {project_changed{time_point{5us}, "ada", {3}, {2}, "n", "KEY", "d", "eve", {{"h", "t"}}, true, false},
     "93af70726f6a6563745f6368616e676564019d05a36164610302a16ea34b4559a164a36576659192a168a174c3c200a0",
     {"93af70726f6a6563745f6368616e676564019b05a36164610302a16ea34b4559a164a36576659192a168a174c3c2"}},
    {template_changed{time_point{5us}, "ada", "t", {2}, value{{"a", 1}}, true},
     "93b074656d706c6174655f6368616e676564019605a3616461a17402c40481a16101c3"},
    {model_changed{time_point{5us},
                   "ada",
                   {4},
                   "m",
                   "d",
                   "n",
                   "eve",
                   {"l"},
                   value{{"a", 1}},
                   {2},
                   time_point{4us},
                   true,
                   false},
     "93ad6d6f64656c5f6368616e676564019d05a361646104a16da164a16ea365766591a16cc40481a161010204c3c2"},
    {model_version_changed{time_point{5us},
                           "ada",
                           {4},
                           1,
                           "u",
                           "n",
                           "c",
                           "t",
                           "eve",
                           {"l"},
                           value{{"a", 1}},
                           time_point{4us},
                           true},
     "93b56d6f64656c5f76657273696f6e5f6368616e676564019d05a36164610401a175a16ea163a174a365766591a16cc40481a16"
     "10104c3"},
    {experiment_moved{time_point{5us}, "ada", {7}, {3}},
     "93b06578706572696d656e745f6d6f766564019405a36164610703"},
    {experiment_described{time_point{5us}, "ada", {7}, "n", "d", "t", {"l"}, true},
     "93b46578706572696d656e745f646573637269626564019b05a361646107a16ea164a17491a16cc3ffffff",
     {"93b46578706572696d656e745f646573637269626564019805a361646107a16ea164a17491a16cc3"}},
    {experiment_resources_changed{time_point{5us}, "ada", 10, 2, -1, "gpu"},
     "93bc6578706572696d656e745f7265736f75726365735f6368616e676564019605a36164610a02ffa3677075"},
    {allocation_preempted{time_point{5us}, {{7}, {2}}, "priority"},
     "93b4616c6c6f636174696f6e5f707265656d70746564019405920702a87072696f72697479a0",
     {"93b4616c6c6f636174696f6e5f707265656d70746564019305920702a87072696f72697479"}},
    {experiment_deleted{time_point{5us}, "ada", {7}, deletion_step::done, "w", {{12}}},
     "93b26578706572696d656e745f64656c65746564019605a36164610703a177910c"},
    {log_retention_changed{time_point{5us}, "ada", {7}, {12}, 30},
     "93b56c6f675f726574656e74696f6e5f6368616e676564019505a3616461070c1e"},
    {group_changed{time_point{5us}, "ada", {2}, "g", {{1}, {3}}, true},
     "93ad67726f75705f6368616e676564019605a361646102a167920103c3"},
    {roles_changed{time_point{5us}, "ada", 5, {3}, {2}, {4}, true},
     "93ad726f6c65735f6368616e676564019705a361646105030204c3"},
    {policy_changed{time_point{5us}, "ada", {2}, "NTSC", value{{"a", 1}}},
     "93ae706f6c6963795f6368616e676564019505a361646102a44e545343c40481a16101"},
    {pool_bound{time_point{5us}, "ada", "gpu", {{2}, {3}}},
     "93aa706f6f6c5f626f756e64019405a3616461a3677075920203"},
    {webhook_changed{time_point{5us}, "ada", {2}, "n", "u", true, {3}, true, value{{"a", 1}}, true},
     "93af776562686f6f6b5f6368616e676564019a05a361646102a16ea175c303c3c40481a16101c3"},
    {webhook_event{time_point{5us}, "id", {2}, "u", true, "b", deletion_step::failed, "w"},
     "93ad776562686f6f6b5f6576656e74019905a2696402a175c3a16202a177a0",
     {"93ad776562686f6f6b5f6576656e74019805a2696402a175c3a16202a177"}},
    {cluster_message_changed{time_point{5us}, "ada", "m", "f", "u", time_point{6us}, time_point{7us}},
     "93b7636c75737465725f6d6573736167655f6368616e676564019705a3616461a16da166a1750607"},
    {user_setting_changed{time_point{5us}, "ada", {3}, "k", "p", "t"},
     "93b4757365725f73657474696e675f6368616e676564019605a361646103a16ba170a174"},
    {project_visited{time_point{5us}, {3}, {2}}, "93af70726f6a6563745f766973697465640193050302"},
    {trial_source_declared{time_point{5us}, "ada", {12}, "c", "FINE_TUNING", "d", {4}, 2},
     "93b5747269616c5f736f757263655f6465636c61726564019805a36164610ca163ab46494e455f54554e494e47a1640402"},
    {checkpoint_described{time_point{5us}, "ada", "u", value{{"n", 1}}},
     "93b4636865636b706f696e745f646573637269626564019405a3616461a175c40481a16e01"},
    {instance_changed{time_point{5us}, "gpu", "ordered", 1, 2, {"i1"}, "w"},
     "93b0696e7374616e63655f6368616e676564019705a3677075a76f726465726564010291a26931a177"},
    {experiment_continued{time_point{5us}, "ada", {7}, 2, {{12}, {13}}, value{{"a", 1}}},
     "93b46578706572696d656e745f636f6e74696e756564019605a36164610702920c0dc40481a16101"},
    {experiment_resumed{time_point{5us}, 2, {{12}, {13}}, true, value{{"a", 1}}},
     "93b26578706572696d656e745f726573756d656401950502920c0dc3c40481a16101"},
    {trial_continued{time_point{5us}, 2, {4}}, "93af747269616c5f636f6e74696e7565640193050204"},
    {log_policy_matched{time_point{5us}, {4}, "p", "x", "l", "a1", true},
     "93b26c6f675f706f6c6963795f6d61746368656401970504a170a178a16ca26131c3"},
    {task_created{time_point{5us},
                  task_id::of(task_kind::command, 1, 2),
                  "ada",
                  "n",
                  {2},
                  value{{"a", 1}},
                  "x",
                  "gpu",
                  value{{"b", 2}},
                  task_id::of(task_kind::generic, 3, 4),
                  {},
                  1,
                  "s"},
     "93ac7461736b5f63726561746564019d05c41010000000000040018000000000000002a3616461a16e02c40481a16101a178a36"
     "77075"
     "c40481a16202c410500000000000400380000000000000040001a173"},
    {task_ready{time_point{5us}, {2}, {{1, 3, "u", "g"}}}, "93aa7461736b5f726561647901930502919401"
                                                           "03a175a167"},
    {task_active{time_point{5us}}, "93ab7461736b5f616374697665019105"},
    {task_paused{time_point{5us}, false, "ada"}, "93ab7461736b5f706175736564019305c2a3616461"},
    {task_stop_ordered{time_point{5us}, "w"},
     "93b17461736b5f73746f705f6f726465726564019305a177a0",
     {"93b17461736b5f73746f705f6f726465726564019205a177"}},
    {task_prioritized{time_point{5us}, "ada", 7}, "93b07461736b5f7072696f726974697a6564019305a361646107"},
    {trial_heard{time_point{5us}}, "93ab747269616c5f6865617264019105"},
    {trial_archived{time_point{5us}, "ada", {7}, {12}, true},
     "93ae747269616c5f6172636869766564019505a3616461070cc3"},
    {trial_deleted{time_point{5us}, "ada", {7}, {12}, deletion_step::done, "w"},
     "93ad747269616c5f64656c65746564019605a3616461070c03a177"},
    {task_ended{time_point{5us}, task_state::error, 3, "w"}, "93aa7461736b5f656e6465640194050603a177"},
    {checkpoint_files_removed{time_point{5us},
                              "ada",
                              task_id::of(task_kind::checkpoint_gc, 1, 2),
                              deletion_step::failed,
                              {7},
                              "files",
                              "ann",
                              {2},
                              "gpu",
                              {"u"},
                              {"*"},
                              3,
                              1,
                              "w",
                              {12}},
     "93b8636865636b706f696e745f66696c65735f72656d6f766564019f05a3616461c410600000000000400180000000000000020"
     "2"
     "07a566696c6573a3616e6e02a367707591a17591a12a0301a1770c"},
  };
  ASSERT_EQ(std::size(all), std::variant_size_v<fact>);
  for (const auto& f : all) {
    EXPECT_EQ(hex(encode(f.x)), f.version_1);
    auto back = decode(unhex(f.version_1));
    ASSERT_TRUE(back) << back.error().what;
    EXPECT_EQ(back->index(), f.x.index());
    EXPECT_EQ(hex(encode(*back)), f.version_1);
    for (const auto& before : f.before) {
      auto older = decode(unhex(before));
      ASSERT_TRUE(older) << older.error().what;
      EXPECT_EQ(hex(encode(*older)), f.version_1) << "the missing field reads as its default";
    }
  }
}

} // namespace
} // namespace troupe
