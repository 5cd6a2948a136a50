// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every family's reader, defined in the family's own file and listed in families.cc.
#pragma once

#include "capture/model/spec/config_reader.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

using Reader = ModelSpec(ConfigReader& config);
Reader ReadAfmoe;
Reader ReadApertus;
Reader ReadArcee;
Reader ReadAxk1;
Reader ReadBitNet;
Reader ReadCohere;
Reader ReadCohere2;
Reader ReadCwm;
Reader ReadDbrx;
Reader ReadDeepSeekV2;
Reader ReadDeepSeekV3;
Reader ReadDots1;
Reader ReadErnie45;
Reader ReadErnie45Moe;
Reader ReadErnie45VlMoe;
Reader ReadExaone;
Reader ReadExaone4;
Reader ReadExaoneMoe;
Reader ReadFalcon;
Reader ReadFlexOlmo;
Reader ReadGemma;
Reader ReadGemma2;
Reader ReadGemma3;
Reader ReadGemma4;
Reader ReadGlm;
Reader ReadGlm4;
Reader ReadGlm4Moe;
Reader ReadGlm4MoeLite;
Reader ReadGlm4v;
Reader ReadGlm4vMoe;
Reader ReadGlmMoeDsa;
Reader ReadGptBigCode;
Reader ReadGptNeoX;
Reader ReadGptOss;
Reader ReadGranite;
Reader ReadGraniteHybrid;
Reader ReadGraniteMoe;
Reader ReadGraniteMoeShared;
Reader ReadGraniteMoeSwa;
Reader ReadGraniteSwa;
Reader ReadHelium;
Reader ReadHunYuanDense;
Reader ReadHunYuanMoe;
Reader ReadHyV3;
Reader ReadInternLm3;
Reader ReadJais2;
Reader ReadLaguna;
Reader ReadLlama;
Reader ReadLlama4;
Reader ReadMellum;
Reader ReadMiMoV2Flash;
Reader ReadMiniCpm3;
Reader ReadMiniMaxM2;
Reader ReadMiniMaxM3;
Reader ReadMinistral;
Reader ReadMinistral3;
Reader ReadMistral;
Reader ReadMistral4;
Reader ReadMixtral;
Reader ReadNemotron;
Reader ReadOlmo;
Reader ReadOlmo2;
Reader ReadOlmo3;
Reader ReadOlmoe;
Reader ReadPhi;
Reader ReadPhi3;
Reader ReadPhi4Multimodal;
Reader ReadPhiMoe;
Reader ReadQwen2;
Reader ReadQwen25Omni;
Reader ReadQwen2Moe;
Reader ReadQwen2Vl;
Reader ReadQwen3;
Reader ReadQwen35;
Reader ReadQwen35Moe;
Reader ReadQwen3Moe;
Reader ReadQwen3Next;
Reader ReadQwen3OmniMoe;
Reader ReadQwen3Vl;
Reader ReadQwen3VlMoe;
Reader ReadSeedOss;
Reader ReadSmolLm3;
Reader ReadSolarOpen;
Reader ReadStableLm;
Reader ReadStarcoder2;
Reader ReadVaultGemma;
Reader ReadYoutu;

}  // namespace oscar
