;; Measures one thing twice.
(func $run (param $target i32) (result i32)
  (call $measure-word 'known')
  (call $measure-word 'known')
  (call $finish))
(func $measure-word (param $at i32) (param $len i32)
  (call $measure 'words' (i32.const 0) '' (i32.const 1) (i64.extend_i32_u (local.get $at)) (local.get $len)))
